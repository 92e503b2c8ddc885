"""Ranges cover all offsets, each once."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from strandline.pipeline.audit.planning import plan_ranges, plan_tasks, split


@given(
    st.integers(0, 1_000),
    st.integers(1, 5_000),
    st.integers(0, 1 << 40),
    st.sets(st.integers(0, 6_000), max_size=4),
    st.integers(1_000, 1 << 26),
)
def test_ranges_cover_every_offset_once_and_break_at_cuts(
    start: int, length: int, size_bytes: int, cuts: set[int], range_bytes: int
) -> None:
    end = start + length
    ranges = plan_ranges(start, end, size_bytes=size_bytes, cuts=cuts, range_bytes=range_bytes)
    assert ranges[0][0] == start and ranges[-1][1] == end
    assert all(one[0] < one[1] for one in ranges)
    assert all(one[1] == other[0] for one, other in pairwise(ranges))
    starts = {one[0] for one in ranges}
    assert all(cut in starts for cut in cuts if start <= cut < end)
    tasks = plan_tasks(ranges, cuts=cuts, range_bytes=range_bytes)
    assert [one for task in tasks for one in task] == ranges
    assert all(one[0] not in cuts for task in tasks for one in task[1:])


@given(st.integers(0, 1_000), st.integers(1, 5_000), st.integers(1, 100))
def test_a_split_covers_its_range(start: int, length: int, count: int) -> None:
    parts = split((start, start + length), count)
    assert len(parts) == min(count, length)
    assert [one for part in parts for one in range(*part)] == list(range(start, start + length))
