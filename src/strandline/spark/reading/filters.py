"""Filters of a query that spare reading: on topic, partition, offset and timestamp.

Why:    a question about one partition, or about the last hour, must not read a whole topic.
How:    filters narrow the ranges of offsets, and Spark still applies each of them to the rows. A
        time narrows only the beginning: records need not be in the order of their times, but every
        record before the first one at or after a time is older.
        Spark pushes filters of batches only, if spark.sql.python.filterPushdown.enabled is true.
Source: PySpark's `DataSourceReader.pushFilters`; KIP-79 (offsets by time)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from strandline.spark.reading.bounds import TopicPartition
from strandline.spark.reading.ranges import OffsetRange

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_TEXT_TESTS: dict[type[Filter], Callable[[str, str], bool]] = {
    StringStartsWith: str.startswith,
    StringEndsWith: str.endswith,
    StringContains: str.__contains__,
}


@dataclass(frozen=True, slots=True)
class Interval:
    """Whole numbers in [low, high], and in `only` if that is not None."""

    low: int | None = None
    high: int | None = None
    only: frozenset[int] | None = None

    def has(self, number: int) -> bool:
        """Whether a number may be in the result."""
        return (
            (self.low is None or self.low <= number)
            and (self.high is None or number <= self.high)
            and (self.only is None or number in self.only)
        )

    def narrowed(self, condition: Filter) -> "Interval":
        """This and a condition; this alone if the condition says nothing about whole numbers."""
        value = getattr(condition, "value", None)
        if isinstance(condition, In):
            if not all(type(one) is int for one in condition.value):
                return self
            found = frozenset(condition.value)
            return replace(self, only=found if self.only is None else self.only & found)
        if type(value) is not int:
            return self
        if isinstance(condition, EqualTo | EqualNullSafe):
            return self._from(value)._to(value)
        if isinstance(condition, GreaterThan | GreaterThanOrEqual):
            return self._from(value + isinstance(condition, GreaterThan))
        if isinstance(condition, LessThan | LessThanOrEqual):
            return self._to(value - isinstance(condition, LessThan))
        return self

    def _from(self, low: int) -> "Interval":
        return replace(self, low=low if self.low is None else max(self.low, low))

    def _to(self, high: int) -> "Interval":
        return replace(self, high=high if self.high is None else min(self.high, high))


class Pruning:
    """What the filters of one query leave to be read."""

    def __init__(self, filters: Iterable[Filter] = ()) -> None:
        self._topic_tests: list[Callable[[str], bool]] = []
        self._partition, self._offset = Interval(), Interval()
        self.since_ms: int | None = None
        """No record before this time is asked for; None if filters do not say."""
        for one in filters:
            self._take(one)

    def apply(
        self,
        ranges: Iterable[OffsetRange],
        at_time: Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int]],
    ) -> list[OffsetRange]:
        """The ranges narrowed; none is empty. `at_time`: {partition: time in ms} -> {partition:
        the offset of the first record at or after it, -1 without any}."""
        kept = [
            one
            for one in ranges
            if self._partition.has(one.partition)
            and all(test(one.topic) for test in self._topic_tests)
        ]
        since: Mapping[TopicPartition, int] = {}
        # Brokers are asked by times from 1970 on: negative ones name the edges of a log.
        if self.since_ms is not None and self.since_ms >= 0 and kept:
            since = at_time({(one.topic, one.partition): self.since_ms for one in kept})
        narrowed = [self._narrow(one, since.get((one.topic, one.partition), 0)) for one in kept]
        return [one for one in narrowed if one.start < one.end]

    def _narrow(self, one: OffsetRange, since: int) -> OffsetRange:
        low, high, only = self._offset.low, self._offset.high, self._offset.only
        start = one.end if since < 0 else max(one.start, since)
        end = one.end
        if low is not None:
            start = max(start, low)
        if high is not None:
            end = min(end, high + 1)
        if only is not None:
            start, end = max(start, min(only, default=end)), min(end, max(only, default=-1) + 1)
        return replace(one, start=start, end=max(start, end))

    def _take(self, condition: Filter) -> None:
        """Keep what a filter says about the columns that narrow ranges."""
        column = getattr(condition, "attribute", None)
        if column == ("partition",):
            self._partition = self._partition.narrowed(condition)
        elif column == ("offset",):
            self._offset = self._offset.narrowed(condition)
        elif column == ("topic",):
            self._take_topic(condition)
        elif column == ("timestamp",):
            self._take_time(condition)

    def _take_topic(self, condition: Filter) -> None:
        if isinstance(condition, In):
            names = frozenset(condition.value)
            self._topic_tests.append(names.__contains__)
        elif isinstance(condition, EqualTo | EqualNullSafe):
            self._topic_tests.append(condition.value.__eq__)
        elif type(condition) in _TEXT_TESTS:
            test, part = _TEXT_TESTS[type(condition)], getattr(condition, "value", "")
            self._topic_tests.append(lambda topic: test(topic, part))

    def _take_time(self, condition: Filter) -> None:
        lows = (EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual)
        values: tuple[object, ...] = ()
        if isinstance(condition, In):
            values = tuple(condition.value)
        elif isinstance(condition, lows):
            values = (condition.value,)
        times = [one for one in values if isinstance(one, datetime) and one.tzinfo is not None]
        if values and len(times) == len(values):
            since_ms = (min(times) - _EPOCH) // _MILLISECOND
            self.since_ms = since_ms if self.since_ms is None else max(self.since_ms, since_ms)
