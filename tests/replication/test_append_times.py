"""How long something is missing: never told too short, and exact enough for what is recent.

Source: `replication.leader.append_times`."""

from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.model.ids import Index
from strandline.replication.leader.append_times import (
    AGE_RATIO,
    SAMPLE_MS,
    SAMPLES_MAX,
    AppendTimes,
)


def noted(times: AppendTimes, appends: list[tuple[int, int]], held: int = -1) -> None:
    for index, at_ms in appends:
        if times.is_due(at_ms):
            times.note(Index(index), at_ms, Index(held))


def test_an_entry_is_as_old_as_the_append_it_came_with() -> None:
    times = AppendTimes()
    noted(times, [(10, 100), (20, 200), (30, 300)])
    assert [times.of(Index(one)) for one in (10, 19, 20, 30, 99)] == [100, 100, 200, 300, 300]


def test_what_was_appended_before_the_reign_is_of_no_known_age() -> None:
    times = AppendTimes()
    assert times.of(Index(5)) is None
    noted(times, [(10, 100)])
    assert times.of(Index(9)) is None


def test_what_every_member_has_is_forgotten_and_nothing_else() -> None:
    times = AppendTimes()
    noted(times, [(10, 100), (20, 200), (30, 300)], held=-1)
    times.note(Index(40), 400, Index(24))
    # 25 is the first that somebody lacks: it came with 20.
    assert times.of(Index(19)) is None
    assert times.of(Index(25)) == 200
    assert len(times._times) == 3


gaps = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 40)), min_size=1, max_size=2_000)


@given(gaps=gaps)
def test_a_lag_is_never_told_too_short_and_the_samples_are_bounded(
    gaps: list[tuple[int, int]],
) -> None:
    times = AppendTimes()
    index, now = 0, 0
    appends = []
    for count, pause_ms in gaps:
        now += pause_ms
        appends.append((index, now))
        noted(times, [(index, now)])
        index += count
        assert len(times._times) <= SAMPLES_MAX
    firsts = [first for first, _ in appends]
    for asked in range(index):
        told = times.of(Index(asked))
        true = appends[bisect_right(firsts, asked) - 1][1]
        assert told is not None and told <= true
    # What is recent is exact but for the distance of two samples.
    last = times.of(Index(index - 1))
    assert last is not None and last > appends[-1][1] - SAMPLE_MS


@pytest.mark.parametrize("true_ms", [100, 500, 2_400, 5_000, 25_000, 60_000, 600_000])
def test_a_lag_is_told_by_an_eighth_too_long_at_most_however_much_is_appended(true_ms: int) -> None:
    """Somebody else has been behind for all the time."""
    times = AppendTimes()
    end_ms = 15 * 60_000
    for now in range(0, end_ms, SAMPLE_MS):
        noted(times, [(now, now)])
        assert len(times._times) <= SAMPLES_MAX
    found = times.of(Index(end_ms - true_ms))
    assert found is not None
    assert true_ms <= end_ms - found <= true_ms + true_ms // AGE_RATIO + 2 * SAMPLE_MS


def test_a_lag_of_days_is_told_and_the_samples_stay_few() -> None:
    times = AppendTimes()
    day_ms = 24 * 3_600_000
    for now in (*range(0, 10_000, 10), *range(10_000, 10 * day_ms, 60_000)):
        noted(times, [(now, now)])
    assert len(times._times) <= SAMPLES_MAX
    found = times.of(Index(8 * day_ms))
    assert found is not None and found >= 6 * day_ms
