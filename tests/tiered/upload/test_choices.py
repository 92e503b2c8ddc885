"""Which range a bucket lacks next, and which replica uploads it.

Source: decisions 0057 and 0059."""

import pytest
from tests.tiered.state.entries import abandon, go_live, intend, retire

from strandline.model.cluster import Labels
from strandline.model.ids import NO_BROKER, BrokerId, Epoch, Index, Offset
from strandline.tiered.state.commands import Command
from strandline.tiered.state.tier import TierState
from strandline.tiered.upload.gaps import Gap, is_next, next_gap
from strandline.tiered.upload.uploaders import choose_uploader

EU, US = "eu", "us"


def _state(*commands: Command) -> TierState:
    state = TierState()
    for at, command in enumerate(commands):
        refusal = state.apply(Index(at), Epoch(1), command, log_end=Offset(1_000))
        assert refusal is None, refusal
    return state


def _live(base: int, end: int, bucket: str = EU) -> list[Command]:
    return [intend(base, end, bucket=bucket), go_live(base, end, bucket=bucket)]


@pytest.mark.parametrize(
    ("commands", "local_start", "expected"),
    [
        ([], 0, Gap(Offset(0), None, is_remote=False)),
        ([], 50, Gap(Offset(50), None, is_remote=False)),
        (_live(0, 10), 0, Gap(Offset(10), None, is_remote=False)),
        ([intend(0, 10)], 0, Gap(Offset(10), None, is_remote=False)),
        # The first of two intents was given up: its range comes first, and ends at the second.
        (
            [intend(0, 10), intend(10, 20), abandon("0-10")],
            0,
            Gap(Offset(0), Offset(10), is_remote=False),
        ),
        (
            [*_live(0, 10), intend(10, 20), intend(20, 30), abandon("10-20")],
            0,
            Gap(Offset(10), Offset(20), is_remote=False),
        ),
        # Another bucket has what the log has no more.
        (_live(0, 10, US), 10, Gap(Offset(0), Offset(10), is_remote=True)),
        ([*_live(0, 10, US), *_live(10, 20, US)], 20, Gap(Offset(0), Offset(10), is_remote=True)),
        (
            [*_live(0, 10), *_live(0, 15, US)],
            12,
            Gap(Offset(10), Offset(12), is_remote=True),
        ),
        # All are retired: what the partition does not reach any more is not copied.
        ([*_live(0, 10), retire(10)], 30, Gap(Offset(30), None, is_remote=False)),
    ],
)
def test_the_first_gap_is_next(
    commands: list[Command], local_start: int, expected: Gap | None
) -> None:
    assert next_gap(_state(*commands), EU, local_start=Offset(local_start)) == expected


def test_records_that_are_nowhere_are_no_gap_to_fill() -> None:
    assert next_gap(_state(*_live(0, 10)), EU, local_start=Offset(30)) is None


def test_only_the_object_without_a_gap_before_it_goes_live() -> None:
    first, second = intend(0, 10), intend(10, 20)
    both = _state(first, second)
    assert is_next(both, first, local_start=Offset(0))
    assert not is_next(both, second, local_start=Offset(0))
    left = _state(first, second, abandon("0-10"))
    assert not is_next(left, second, local_start=Offset(0))
    assert is_next(left, second, local_start=Offset(10)), "nothing before it is left"
    after = _state(*_live(0, 10), second)
    assert is_next(after, second, local_start=Offset(0))


def _at(region: str, **free: str) -> Labels:
    return Labels.of({"region": region, **free})


BROKERS = {BrokerId(1): _at("us"), BrokerId(2): _at("eu"), BrokerId(3): _at("eu")}


def _choose(
    bucket: Labels, *, spread: int = 0, avoided: tuple[int, ...] = (), leader: int = 1
) -> int:
    return choose_uploader(
        BROKERS,
        bucket,
        leader=BrokerId(leader),
        spread=spread,
        avoided=[BrokerId(one) for one in avoided],
    )


def test_a_replica_in_the_buckets_region_uploads() -> None:
    assert [_choose(_at("eu"), spread=one) for one in range(4)] == [2, 3, 2, 3]
    assert _choose(_at("us"), leader=2) == 1


def test_without_one_the_nearest_by_labels_does_and_then_the_leader() -> None:
    assert _choose(_at("asia"), leader=3) == 3
    brokers = {BrokerId(1): _at("us", country="us"), BrokerId(2): _at("eu", country="de")}
    bucket = _at("north", country="de")
    assert choose_uploader(brokers, bucket, leader=BrokerId(1), spread=0) == 2


def test_a_replica_that_failed_is_avoided_unless_all_have() -> None:
    assert _choose(_at("eu"), avoided=(2,)) == 3
    assert _choose(_at("eu"), avoided=(2, 3)) == 1
    assert _choose(_at("eu"), avoided=(1, 2, 3)) in (2, 3)
    assert choose_uploader({}, _at("eu"), leader=BrokerId(1), spread=0) == NO_BROKER
