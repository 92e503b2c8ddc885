"""What it takes to copy logs elsewhere: bytes, and time at the throttle (decision 0010)."""

import pytest

from strandline.model.ids import BrokerId
from strandline.placement.explain.amounts import format_bytes, format_seconds
from strandline.placement.explain.copies import Copy, Limit, Slowest, cost_of

ONE, TWO, THREE = map(BrokerId, (1, 2, 3))
FAR = Limit("far", 10, source=ONE, crosses=True)
LIMITS = [Limit("near", 100, source=ONE, crosses=False), FAR, Limit("far", 1_000, source=TWO)]


def copy(source: BrokerId, size: int | None, *, crosses: bool) -> Copy:
    return Copy(source=source, target=THREE, bytes=size, crosses=crosses)


def test_each_broker_sends_near_and_far_at_the_same_time_and_the_slowest_counts() -> None:
    cost = cost_of(
        [
            copy(ONE, 900, crosses=False),
            copy(ONE, 50, crosses=True),
            copy(ONE, 50, crosses=True),
            copy(TWO, 5_000, crosses=True),
        ],
        LIMITS,
    )
    assert (cost.copies, cost.bytes, cost.cross_region_bytes, cost.unknown) == (4, 6_000, 5_100, 0)
    assert cost.slowest == Slowest(FAR, 100, 10.0)


def test_what_is_not_known_is_not_made_up() -> None:
    cost = cost_of([copy(ONE, None, crosses=True), copy(THREE, 7, crosses=False)], LIMITS)
    assert (cost.copies, cost.bytes, cost.unknown, cost.slowest) == (2, 7, 1, None)
    assert cost_of([], LIMITS).slowest is None


def test_limits_over_all_brokers_and_for_who_takes_copies_count_too() -> None:
    copies = [copy(ONE, 60, crosses=True), copy(TWO, 40, crosses=False)]
    whole, far = Limit("all", 10), Limit("far", 5, crosses=True)
    taken = Limit("taken", 4, target=THREE)
    assert cost_of(copies, [whole]).slowest == Slowest(whole, 100, 10.0)
    assert cost_of(copies, [whole, far]).slowest == Slowest(far, 60, 12.0)
    assert cost_of(copies, [whole, far, taken]).slowest == Slowest(taken, 100, 25.0)
    halted = Limit("halted", 0, crosses=True)
    assert cost_of(copies, [whole, halted, taken]).slowest == Slowest(halted, 60, None)
    assert cost_of(copies[1:], [halted]).slowest is None


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.0 kB"),
        (999_940, "999.9 kB"),
        (999_960, "1.0 MB"),
        (3_140_000_000, "3.1 GB"),
        (10**16, "10000.0 TB"),
    ],
)
def test_bytes_are_told_in_the_unit_that_fits(count: int, text: str) -> None:
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0.2, "under 1 s"),
        (1, "1 s"),
        (119, "119 s"),
        (150, "2.5 min"),
        (9_000, "2.5 h"),
        (216_000, "2.5 d"),
    ],
)
def test_durations_are_told_in_the_unit_that_fits(count: float, text: str) -> None:
    assert format_seconds(count) == text
