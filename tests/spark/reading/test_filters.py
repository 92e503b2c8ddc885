"""Filters spare reading and change no row.

Source: PySpark's `DataSourceReader.pushFilters`."""

import pickle
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringEndsWith,
    StringStartsWith,
)

from strandline.spark.reading.batch_reader import BatchReader
from strandline.spark.reading.bounds import TopicPartition
from strandline.spark.reading.filters import Pruning
from strandline.spark.reading.options import parse_options
from strandline.spark.reading.ranges import OffsetRange

RANGES = [
    OffsetRange(topic, "", partition, 10, 100)
    for topic in ("orders", "returns")
    for partition in (0, 1, 2)
]
PARTITION, OFFSET, TOPIC, TIME = ("partition",), ("offset",), ("topic",), ("timestamp",)


def no_times(asked: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
    raise AssertionError("no time was asked for")


def left(*filters: Filter) -> list[tuple[str, int, int, int]]:
    found = Pruning(filters).apply(RANGES, no_times)
    return [(one.topic, one.partition, one.start, one.end) for one in found]


def test_without_filters_everything_is_read() -> None:
    assert len(left()) == 6


@pytest.mark.parametrize(
    ("condition", "partitions"),
    [
        (EqualTo(PARTITION, 1), {1}),
        (EqualNullSafe(PARTITION, 1), {1}),
        (GreaterThan(PARTITION, 1), {2}),
        (GreaterThanOrEqual(PARTITION, 1), {1, 2}),
        (LessThan(PARTITION, 1), {0}),
        (LessThanOrEqual(PARTITION, 1), {0, 1}),
        (In(PARTITION, (0, 2, 9)), {0, 2}),
        (Not(EqualTo(PARTITION, 1)), {0, 1, 2}),
        (IsNotNull(PARTITION), {0, 1, 2}),
        (EqualTo(PARTITION, None), {0, 1, 2}),
        (In(PARTITION, (0, None)), {0, 1, 2}),
    ],
)
def test_partitions_are_left_out(condition: Filter, partitions: set[int]) -> None:
    assert {partition for _, partition, _, _ in left(condition)} == partitions


def test_topics_are_left_out() -> None:
    assert {topic for topic, *_ in left(EqualTo(TOPIC, "orders"))} == {"orders"}
    assert {topic for topic, *_ in left(In(TOPIC, ("returns", "x")))} == {"returns"}
    assert {topic for topic, *_ in left(StringStartsWith(TOPIC, "ret"))} == {"returns"}
    assert {topic for topic, *_ in left(StringEndsWith(TOPIC, "s"))} == {"orders", "returns"}


def test_offsets_narrow_ranges() -> None:
    one = (EqualTo(TOPIC, "orders"), EqualTo(PARTITION, 0))
    assert left(*one, GreaterThan(OFFSET, 20), LessThanOrEqual(OFFSET, 30)) == [
        ("orders", 0, 21, 31)
    ]
    assert left(*one, In(OFFSET, (5, 40, 60))) == [("orders", 0, 10, 61)]
    assert left(*one, EqualTo(OFFSET, 50)) == [("orders", 0, 50, 51)]
    assert left(*one, GreaterThan(OFFSET, 50), LessThan(OFFSET, 50)) == []
    assert left(*one, In(OFFSET, ())) == []


def test_a_time_narrows_the_beginning_alone() -> None:
    when = datetime(2026, 1, 1, 12, 0, 0, 500, tzinfo=UTC)
    asked: dict[TopicPartition, int] = {}

    def at_time(times: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        asked.update(times)
        return {one: {0: 40, 1: -1, 2: 5}[one[1]] for one in times}

    filters = (GreaterThanOrEqual(TIME, when), LessThan(TIME, when + timedelta(seconds=1)))
    found = Pruning((*filters, EqualTo(TOPIC, "orders"))).apply(RANGES, at_time)
    assert [(one.partition, one.start, one.end) for one in found] == [(0, 40, 100), (2, 10, 100)]
    assert set(asked.values()) == {int(when.timestamp() * 1000)}
    assert len(asked) == 3


def test_a_time_before_1970_narrows_nothing() -> None:
    """Records may be older still, or have no time (-1); brokers know no times below 0."""
    last = datetime(1970, 1, 1, tzinfo=UTC) - timedelta(milliseconds=1)
    for when in (last, datetime(1, 1, 1, tzinfo=UTC)):
        assert len(left(GreaterThanOrEqual(TIME, when))) == len(RANGES)


def test_times_without_a_zone_say_nothing() -> None:
    assert Pruning([GreaterThan(TIME, datetime(2026, 1, 1))]).since_ms is None
    elsewhere = datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))
    assert Pruning([GreaterThan(TIME, elsewhere)]).since_ms == 0


numbers = st.integers(-5, 120)
conditions = st.one_of(
    *(st.builds(kind, st.just(OFFSET), numbers) for kind in (EqualTo, GreaterThan, LessThan)),
    *(st.builds(kind, st.just(OFFSET), numbers) for kind in (GreaterThanOrEqual, LessThanOrEqual)),
    st.builds(In, st.just(OFFSET), st.lists(numbers, max_size=4).map(tuple)),
)


def holds(condition: Filter, offset: int) -> bool:
    if isinstance(condition, In):
        return offset in condition.value
    value = condition.value  # type: ignore[attr-defined]
    compared = {
        EqualTo: offset == value,
        GreaterThan: offset > value,
        LessThan: offset < value,
        GreaterThanOrEqual: offset >= value,
        LessThanOrEqual: offset <= value,
    }
    return compared[type(condition)]


@given(st.lists(conditions, max_size=4))
def test_no_record_that_filters_ask_for_is_left_out(filters: list[Filter]) -> None:
    found = Pruning(filters).apply([RANGES[0]], no_times)
    covered = {offset for one in found for offset in range(one.start, one.end)}
    assert covered >= {n for n in range(10, 100) if all(holds(one, n) for one in filters)}


def test_a_reader_takes_filters_and_looks_as_if_it_did_not() -> None:
    """PySpark refuses a reader with `pushFilters` of its own while push-down is off."""
    options = parse_options({"kafka.bootstrap.servers": "a:1", "subscribe": "orders"})
    reader = BatchReader(options, ("value",))
    assert getattr(reader.pushFilters, "__func__", None) is DataSourceReader.pushFilters
    filters: list[Filter] = [GreaterThan(TIME, datetime.fromtimestamp(5, UTC))]
    assert list(reader.pushFilters(filters)) == filters
    assert reader._pruning.since_ms == 5_000
    assert pickle.loads(pickle.dumps(reader))._columns == ("value",)
