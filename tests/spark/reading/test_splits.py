"""Ranges of offsets become tasks: every offset once, and enough tasks for all cores."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.spark.reading.options import ReadOptions, parse_options
from strandline.spark.reading.ranges import OffsetRange
from strandline.spark.reading.splits import split_ranges


def options(**given: str) -> ReadOptions:
    return parse_options({"kafka.bootstrap.servers": "a:1", "subscribe": "orders", **given})


def ranges(*lengths: int, start: int = 100) -> list[OffsetRange]:
    return [OffsetRange("orders", "", i, start, start + n) for i, n in enumerate(lengths)]


def lengths_of(*lengths: int, cores: int = 2, **given: str) -> list[int]:
    splits = split_ranges(ranges(*lengths), options(**given), cores=cores)
    return [one.end - one.start for one in splits]


def test_one_large_partition_feeds_all_cores() -> None:
    assert lengths_of(400_000, cores=4) == [100_000] * 4


def test_small_partitions_are_one_task_each() -> None:
    assert lengths_of(10, 49_999, 1, cores=8) == [10, 49_999, 1]


def test_a_task_has_at_most_so_many_offsets() -> None:
    assert lengths_of(5_000_000, cores=1) == [500_000] * 10
    assert lengths_of(100, maxRecordsPerPartition="30") == [25] * 4


def test_as_many_tasks_as_asked_for() -> None:
    assert lengths_of(100, 300, minPartitions="8") == [50] * 8
    assert lengths_of(3, minPartitions="8") == [1, 1, 1]


def test_nothing_to_read_is_no_task() -> None:
    assert split_ranges([], options(minPartitions="4")) == []


@given(
    lengths=st.lists(st.integers(1, 2_000_000), min_size=1, max_size=6),
    cores=st.integers(1, 64),
    tasks=st.none() | st.integers(1, 200),
)
def test_every_offset_is_in_exactly_one_task(
    lengths: list[int], cores: int, tasks: int | None
) -> None:
    given = {} if tasks is None else {"minPartitions": str(tasks)}
    splits = split_ranges(ranges(*lengths, start=7), options(**given), cores=cores)
    for number, length in enumerate(lengths):
        mine = [(one.start, one.end) for one in splits if one.partition == number]
        assert mine[0][0] == 7 and mine[-1][1] == 7 + length
        assert all(before[1] == after[0] for before, after in pairwise(mine))
        assert all(start < end for start, end in mine)
    if tasks is not None and sum(lengths) >= tasks:
        assert len(splits) >= tasks


@pytest.mark.parametrize("cores", [1, 3, 16])
def test_no_task_is_too_small_to_be_worth_starting(cores: int) -> None:
    splits = split_ranges(ranges(90_000, 1_000_000), options(), cores=cores)
    assert min(one.end - one.start for one in splits) >= 25_000
