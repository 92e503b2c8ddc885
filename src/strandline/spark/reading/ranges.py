"""Turns what a query asks for into offsets: one range for each partition.

Why:    a batch must read what it promises. A range that the log no longer holds, or does not hold
        yet, is an error before the first task starts.
Source: Spark's guide to its Kafka connector; decisions/0049."""

from collections.abc import Mapping
from dataclasses import dataclass

from strandline.base.errors import OperatorError
from strandline.spark.reading.bounds import (
    EARLIEST,
    LATEST,
    Bound,
    Edge,
    Offsets,
    Time,
    Times,
    TopicPartition,
    name_of,
    names_of,
)
from strandline.spark.reading.cluster import ClusterReader, Topic
from strandline.spark.reading.data_loss import DataLoss
from strandline.spark.reading.options import ReadOptions, check_all_named


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets [start, end) of one partition. `topic_id`: the topic's UUID as text, or empty."""

    topic: str
    topic_id: str
    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Resolved:
    """{partition: offset}. `at_latest`: those that were taken from the end of the log, and would be
    others a moment later."""

    offsets: Mapping[TopicPartition, int]
    at_latest: frozenset[TopicPartition]


def partitions_of(topics: Mapping[str, Topic]) -> list[TopicPartition]:
    """Every partition of the topics."""
    return [(topic.name, one) for topic in topics.values() for one in topic.partitions]


class RangeResolver:
    """See the module."""

    def __init__(self, cluster: ClusterReader, options: ReadOptions) -> None:
        self._cluster = cluster
        self._options = options
        self._loss = DataLoss(fails=options.fail_on_data_loss)

    def start(self, topics: Mapping[str, Topic], bound: Bound) -> Resolved:
        """Where a read begins. Raises OperatorError, DataLossError."""
        partitions = partitions_of(topics)
        if isinstance(bound, Edge):
            return self._edge(partitions, bound.offset)
        if isinstance(bound, Offsets):
            return self._told(partitions, bound)
        times = self._times(partitions, bound)
        found = self._cluster.offsets(times)
        late = [one for one, offset in found.items() if offset < 0]
        if late and not self._options.latest_if_no_match:
            raise OperatorError(
                f"{bound.option}: {names_of(late)}: no record is at or after that time: give an "
                "earlier one, or startingOffsetsByTimestampStrategy=latest"
            )
        ends = self._cluster.offsets(dict.fromkeys(late, LATEST))
        return Resolved({**found, **ends}, frozenset(late))

    def end(self, topics: Mapping[str, Topic], bound: Bound) -> Resolved:
        """Where a batch ends."""
        partitions = partitions_of(topics)
        if isinstance(bound, Edge):
            return self._edge(partitions, bound.offset)
        if isinstance(bound, Offsets):
            return self._told(partitions, bound)
        found = self._cluster.offsets(self._times(partitions, bound))
        open_ended = [one for one, offset in found.items() if offset < 0]
        ends = self._cluster.offsets(dict.fromkeys(open_ended, LATEST))
        return Resolved({**found, **ends}, frozenset(open_ended))

    def _edge(self, partitions: list[TopicPartition], edge: int) -> Resolved:
        at_latest = partitions if edge == LATEST else ()
        offsets = self._cluster.offsets(dict.fromkeys(partitions, edge))
        return Resolved(offsets, frozenset(at_latest))

    def _told(self, partitions: list[TopicPartition], bound: Offsets) -> Resolved:
        """Offsets by number, each within what the log holds; edges where JSON says -1 or -2."""
        check_all_named(bound, frozenset(partitions))
        lows = self._cluster.offsets(dict.fromkeys(partitions, EARLIEST))
        highs = self._cluster.offsets(dict.fromkeys(partitions, LATEST))
        offsets: dict[TopicPartition, int] = {}
        for one in partitions:
            told, low, high = bound.of[one], lows[one], highs[one]
            if told >= 0 and not low <= told <= high:
                self._loss.report(
                    f"{bound.option}: {name_of(one)} has offsets {low} to {high}, not {told}"
                )
            edges = {EARLIEST: low, LATEST: high}
            offsets[one] = edges.get(told, min(max(told, low), high))
        at_latest = frozenset(one for one in partitions if bound.of[one] == LATEST)
        return Resolved(offsets, at_latest)

    @staticmethod
    def _times(partitions: list[TopicPartition], bound: Bound) -> dict[TopicPartition, int]:
        """{partition: time in ms}"""
        if isinstance(bound, Time):
            return dict.fromkeys(partitions, bound.timestamp_ms)
        assert not isinstance(bound, Edge | Offsets)
        check_all_named(bound, frozenset(partitions))
        return {one: bound.of[one] for one in partitions}


def plan_ranges(cluster: ClusterReader, options: ReadOptions) -> list[OffsetRange]:
    """What a batch reads; no empty range. Raises OperatorError, DataLossError."""
    resolver = RangeResolver(cluster, options)
    topics = cluster.topics(options.subscription)
    starts = resolver.start(topics, options.starting or Edge(EARLIEST)).offsets
    ends = resolver.end(topics, options.ending).offsets
    is_timed = isinstance(options.starting, Time | Times) or isinstance(
        options.ending, Time | Times
    )
    ranges = []
    for place in partitions_of(topics):
        start, end = starts[place], ends[place]
        if start > end and not is_timed:
            raise OperatorError(
                f"startingOffsets: {name_of(place)} begins at offset {start}, and endingOffsets "
                f"ends it at {end}"
            )
        # A time that ends before the read begins is no record.
        if start < end:
            topic, partition = place
            ranges.append(OffsetRange(topic, topics[topic].id, partition, start, end))
    return ranges
