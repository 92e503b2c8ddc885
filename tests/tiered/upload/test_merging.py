"""Which small objects become one (decision 0066)."""

from tests.tiered.state.entries import entry

from strandline.model.ids import Offset
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.upload.merging import (
    LOOKBACK_COUNT,
    MergeSearch,
    RunLimits,
    find_run,
    limits_for,
)

LIMITS = RunLimits(100_000)


def row(*sizes: int, start: int = 0, every_ms: int = 0) -> list[SegmentEntry]:
    """Neighbours of so many bytes of data, each of ten records."""
    return [
        entry(base, base + 10, size_bytes=size + 100, max_timestamp=at * every_ms)
        for at, (size, base) in enumerate(
            zip(sizes, range(start, start + 10 * len(sizes), 10), strict=True)
        )
    ]


def bounds(run: object) -> tuple[int, int] | None:
    return (run[0].base_offset, run[-1].end_offset) if run else None  # type: ignore[index]


def test_a_run_needs_enough_small_objects() -> None:
    assert find_run(row(*[1_000] * 7), LIMITS) is None
    assert bounds(find_run(row(*[1_000] * 8), LIMITS)) == (0, 80)
    assert bounds(find_run(row(*[50_000] * 3, *[1_000] * 9, 60_000), LIMITS)) == (30, 120)
    assert find_run(row(*[1_000, 50_000] * 8), LIMITS) is None


def test_a_result_that_hardly_grows_is_not_worth_it() -> None:
    assert find_run(row(12_000, *[100] * 7), LIMITS) is None
    assert bounds(find_run(row(12_000, *[100] * 8), LIMITS)) == (10, 90)


def test_a_run_ends_where_the_target_is_full() -> None:
    assert bounds(find_run(row(*[12_000] * 20), LIMITS)) == (0, 80)


def test_a_run_is_a_part_of_what_retention_keeps() -> None:
    limits = limits_for(
        bytes_max=100_000, retention_ms=80_000, retention_bytes=-1, retention_records=-1
    )
    assert find_run(row(*[100] * 20, every_ms=2_000), limits) is None
    assert bounds(find_run(row(*[100] * 20, every_ms=1_000), limits)) == (0, 110)
    limits = limits_for(
        bytes_max=100_000, retention_ms=-1, retention_bytes=-1, retention_records=800
    )
    assert bounds(find_run(row(*[100] * 20), limits)) == (0, 100)
    limits = limits_for(
        bytes_max=100_000, retention_ms=-1, retention_bytes=16_000, retention_records=-1
    )
    assert limits.bytes_max == 2_000


def test_a_search_goes_on_where_it_was_and_looks_back() -> None:
    live = row(*[1_000] * 7)
    search = MergeSearch()
    assert search.next_run(live, LIMITS) is None
    assert search.is_over(Offset(70), LIMITS)
    live += row(1_000, start=70)
    assert not search.is_over(Offset(80), LIMITS)
    assert bounds(search.next_run(live, LIMITS)) == (0, 80)
    assert not search.is_over(Offset(80), LIMITS), "until it is replaced"
    assert search.next_run(row(8_000), LIMITS) is None


def test_many_objects_are_searched_in_steps() -> None:
    live = row(*[50_000] * 3_000, *[1_000] * 8)
    search = MergeSearch()
    steps = 0
    while (run := search.next_run(live, LIMITS)) is None:
        steps += 1
        assert not search.is_over(live[-1].end_offset, LIMITS)
    assert bounds(run) == (30_000, 30_080)
    assert 2 <= steps <= 3_000 // LOOKBACK_COUNT


def test_other_limits_begin_anew() -> None:
    live = row(*[1_000] * 8)
    search = MergeSearch()
    assert search.next_run(live, RunLimits(5_000)) is None
    assert search.is_over(Offset(80), RunLimits(5_000))
    assert not search.is_over(Offset(80), LIMITS)
    assert search.next_run(live, LIMITS) is not None
