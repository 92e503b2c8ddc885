"""Reads topics as a stream: `spark.readStream.format("strandline")`.

How:    driver      initialOffset (first run only) -> latestOffset -> partitions -> latestOffset ...
        executors   read of each split
        restart     Spark repeats `partitions(start, end)` of a micro-batch that it had planned
        Spark does not keep where a stream began until its first micro-batch is planned: a restart
        in between asks again. So a stream that begins at latest has an empty first micro-batch:
        the checkpoint then holds the very offsets from which the second one reads.
Owns:   in the driver's copy: a client, the target of Trigger.AvailableNow, the last end seen.
Source: PySpark's `DataSourceStreamReader`; decisions/0049."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from strandline.client.cluster import Client
from strandline.spark.reading.admission import Delay, limited, new_count
from strandline.spark.reading.bounds import EARLIEST, LATEST, Edge, TopicPartition, name_of
from strandline.spark.reading.cluster import ClusterReader, Topic, connect
from strandline.spark.reading.data_loss import DataLoss
from strandline.spark.reading.option_values import INTEGER_MAX
from strandline.spark.reading.options import ReadOptions
from strandline.spark.reading.ranges import OffsetRange, RangeResolver, partitions_of
from strandline.spark.reading.split_reading import read_partition
from strandline.spark.reading.splits import split_ranges
from strandline.spark.reading.stream_offsets import (
    JsonOffsets,
    StreamOffsets,
    from_json,
    to_json,
)
from strandline.spark.reading.tiers import cluster_reader, place_splits

if TYPE_CHECKING:
    from pyarrow import RecordBatch


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """See the module."""

    def __init__(self, options: ReadOptions, columns: tuple[str, ...]) -> None:
        options.check_stream()
        self._options = options
        self._columns = columns
        self._loss = DataLoss(fails=options.fail_on_data_loss)
        self._delay = Delay(
            count_min=options.offsets_per_trigger_min, delay_max_ms=options.trigger_delay_max_ms
        )
        self._client: Client | None = None
        self._readable: set[str] = set()
        """Topics that brokers have said this client may read."""
        self._target: StreamOffsets | None = None
        """Where Trigger.AvailableNow ends; None for other triggers."""
        self._latest: StreamOffsets | None = None
        self._began_here = False
        """Whether this run determined where the stream begins."""
        self._empty_from: JsonOffsets | None = None
        """Where the empty first micro-batch is, until it is planned."""

    def __getstate__(self) -> dict[str, object]:
        """Executors get no connections."""
        return {**self.__dict__, "_client": None}

    # ---- where to begin and end ------------------------------------------------------------------

    def initialOffset(self) -> JsonOffsets:  # noqa: N802 (Spark's name)
        """Where a stream without a checkpoint begins."""
        topics = self._cluster().topics(self._options.subscription)
        self._require_readable(topics)
        starting = self._options.starting or Edge(LATEST)
        found = RangeResolver(self._cluster(), self._options).start(topics, starting)
        self._began_here = True
        start = to_json(StreamOffsets(found.offsets, _ids(topics)))
        self._empty_from = start if found.at_latest else None
        return start

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 (Spark's name)
        """The limit that Spark hands to `latestOffset`, but for Trigger.Once, which has none."""
        options = self._options
        if options.offsets_per_trigger_max is not None:
            return ReadMaxRows(options.offsets_per_trigger_max)
        if options.offsets_per_trigger_min is not None:
            return ReadMinRows(options.offsets_per_trigger_min)
        return ReadMaxRows(INTEGER_MAX)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 (Spark's name)
        """Fix where this run ends: records that come later are left to the next run."""
        self._target = self._end_of_logs()

    def latestOffset(self, start: JsonOffsets, limit: ReadLimit) -> JsonOffsets:  # noqa: N802
        """Where the next micro-batch ends; `start` itself if there is nothing for one."""
        unlimited = isinstance(limit, ReadAllAvailable)
        empty_from, self._empty_from = self._empty_from, None
        if start == empty_from and not unlimited:
            return start
        begun = from_json(start)
        end = self._target or self._end_of_logs()
        self._latest = end
        begins = self._begins(begun, end)
        ends = {one: self._end_of(one, begins[one], offset) for one, offset in end.of.items()}
        count = new_count(begins, ends)
        if not unlimited:
            waits = self._target is None and self._delay.waits(
                count, self._connected().transport.monotonic_ms()
            )
            if waits:
                return start
            if isinstance(limit, ReadMaxRows):
                ends = limited(begins, ends, limit.max_rows)
        found = StreamOffsets(ends, end.ids)
        return start if found == begun else to_json(found)

    def reportLatestOffset(self) -> JsonOffsets | None:  # noqa: N802 (Spark's name)
        """The end of the logs as last seen, for the progress of the query."""
        return None if self._latest is None else to_json(self._latest)

    def _end_of_logs(self) -> StreamOffsets:
        cluster = self._cluster()
        missing_ok = not self._loss.fails
        topics = cluster.topics(self._options.subscription, missing_ok=missing_ok)
        self._require_readable(topics)
        ends = cluster.offsets(dict.fromkeys(partitions_of(topics), LATEST))
        return StreamOffsets(ends, _ids(topics))

    def _require_readable(self, topics: Mapping[str, Topic]) -> None:
        """Once in a run, and again for topics that appear later."""
        new = topics.keys() - self._readable
        if new:
            self._cluster().require_readable(new)
            self._readable |= new

    def _begins(self, begun: StreamOffsets, end: StreamOffsets) -> dict[TopicPartition, int]:
        """Where each partition of `end` is read from: where the stream stands, or the start of a
        new one. What the stream has read and is not there any more is reported."""
        anew = {
            topic for topic in end.topics if not begun.same_topic(topic, end.ids.get(topic, ""))
        }
        for topic in sorted(anew & begun.topics):
            self._loss.report(
                f"topic {topic} was made anew: its id was {begun.ids[topic]}, is {end.ids[topic]}"
            )
        if gone := sorted(set(begun.of) - set(end.of)):
            self._loss.report(f"partition {name_of(gone[0])} is not there any more, or not read")
        new = [one for one in end.of if one not in begun.of or one[0] in anew]
        return {
            **{one: begun.of[one] for one in end.of if one not in set(new)},
            **self._cluster().offsets(dict.fromkeys(new, EARLIEST)),
        }

    def _end_of(self, place: TopicPartition, begin: int, end: int) -> int:
        """The end of a partition's log; a log that ends before the stream stands is reported."""
        if end >= begin:
            return end
        if self._target is not None and self._began_here:
            return begin  # It began after the target was fixed.
        if self._reads_buckets_alone:
            return begin  # What it has read of brokers is on its way to a bucket.
        self._loss.report(f"partition {name_of(place)} ends at offset {end}, before {begin}")
        return end

    @property
    def _reads_buckets_alone(self) -> bool:
        buckets = self._options.reach.buckets
        return buckets is not None and buckets.is_exclusive

    # ---- one micro-batch -------------------------------------------------------------------------

    def partitions(self, start: JsonOffsets, end: JsonOffsets) -> Sequence[InputPartition]:
        """The splits of a micro-batch. Partitions that `start` lacks are read from their first
        record."""
        begun, ended = from_json(start), from_json(end)
        known = {
            one
            for one in ended.of
            if one in begun.of and begun.same_topic(one[0], ended.ids.get(one[0], ""))
        }
        new = dict.fromkeys((one for one in ended.of if one not in known), EARLIEST)
        begins = {**{one: begun.of[one] for one in known}, **self._cluster().offsets(new)}
        ranges = []
        for place in sorted(ended.of):
            begin, stop = begins[place], ended.of[place]
            if place in new and begin > 0:
                self._loss.report(f"new partition {name_of(place)} begins at offset {begin}, not 0")
            if begin > stop and not self._began_here:
                self._loss.report(f"partition {name_of(place)} stood at {begin}, now at {stop}")
            if begin < stop:
                topic, partition = place
                topic_id = ended.ids.get(topic, "")
                ranges.append(OffsetRange(topic, topic_id, partition, begin, stop))
        splits = split_ranges(ranges, self._options)
        return place_splits(self._connected(), splits, self._options.reach)

    def read(self, partition: InputPartition) -> Iterator["RecordBatch"]:
        """The records of one split, on an executor."""
        return read_partition(partition, self._options, self._columns)

    def stop(self) -> None:
        """The query ended."""
        if self._client is not None:
            self._client.close()
        self._client = None

    # ---- the driver's connections ----------------------------------------------------------------

    def _connected(self) -> Client:
        if self._client is None:
            self._client = self._connect()
        return self._client

    def _connect(self) -> Client:
        return connect(self._options.reach)

    def _cluster(self) -> ClusterReader:
        return cluster_reader(self._connected(), self._options.reach)


def _ids(topics: Mapping[str, Topic]) -> dict[str, str]:
    return {topic.name: topic.id for topic in topics.values() if topic.id}
