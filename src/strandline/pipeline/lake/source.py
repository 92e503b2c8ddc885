"""A batch's records as a data frame, by one of two data sources.

Why:    a batch is a set of ranges of offsets; the source must read exactly these or fail.
How:    strandline   the code of the data source `strandline` reads, and values are decoded in the
                     same pass of a Python worker. It compares each topic's id with the plan's.
        kafka        Spark's Kafka connector with `assign`, starting and ending offsets; values are
                     decoded by a second pass. Each task compares the topics' ids at its end.
        Both: records that are gone are an error, aborted transactions are left out.
Source: decisions/0049, decisions/0050."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from strandline.pipeline.lake.cluster import NO_ID, Cluster
from strandline.pipeline.lake.options import LakeOptions
from strandline.pipeline.lake.progress import Batch
from strandline.pipeline.lake.rows import RECORD_TYPE, record_type, records_of, worker_columns
from strandline.spark.access import FILE
from strandline.spark.reading.cluster import connect
from strandline.spark.reading.options import ReachOptions, parse_options
from strandline.spark.reading.split_reading import read_split
from strandline.spark.reading.splits import Split
from strandline.spark.reading.tiers import place_groups

if TYPE_CHECKING:
    from pyarrow import RecordBatch

# The connector asks ListOffsets twice after every poll; polls of 500 records, the default, halve
# its speed.
_CONNECTOR_OPTIONS = {
    "kafka.max.poll.records": "20000",
    "kafka.max.partition.fetch.bytes": str(8 << 20),
    "kafka.default.api.timeout.ms": "60000",
}
_COLUMNS = ("topic", "partition", "offset", "timestamp", "headers", "key", "value")


def read_batch(spark: SparkSession, batch: Batch, options: LakeOptions, *, tasks: int) -> DataFrame:
    """The records of a batch that has some, in `tasks` tasks, as `rows.record_type` says."""
    given = reader_options(batch, options)
    if options.source == "kafka":
        chosen = given | {"minPartitions": str(tasks)}
        records = spark.read.format("kafka").options(**chosen).load().coalesce(tasks)
        return records_of(_of_these_topics(records, batch, options), options)
    reach = parse_options(given).reach
    reading = read_groups(groups_of(batch, reach, tasks), reach, options)
    return spark.range(0, tasks, 1, tasks).mapInArrow(reading, record_type(options))


def _of_these_topics(records: DataFrame, batch: Batch, options: LakeOptions) -> DataFrame:
    """The same records. A task fails at its end if a topic is another one by then: the connector
    names topics only."""
    ids = {name: topic.id for name, topic in batch.topics.items() if topic.read}
    known = {name: each for name, each in ids.items() if each != NO_ID}
    bootstrap, access = options.bootstrap, options.access

    def check(batches: "Iterable[RecordBatch]") -> "Iterator[RecordBatch]":
        yield from batches
        with Cluster(bootstrap, access=access) as cluster:
            cluster.check_ids(known)

    if not known or options.is_secure:  # Only Kafka's client knows how brokers are reached.
        return records
    return records.mapInArrow(check, records.schema)


def no_records(spark: SparkSession, options: LakeOptions) -> DataFrame:
    """The same columns without a row."""
    return records_of(spark.createDataFrame([], RECORD_TYPE), options)


def group_reader(
    groups: Sequence[Sequence[Split]], reach: ReachOptions, options: LakeOptions
) -> "Callable[[int], Iterator[RecordBatch]]":
    """Gives the records of the group of a number, as `rows.record_type` says."""
    columns = worker_columns(options)

    def read(number: int) -> "Iterator[RecordBatch]":
        for split in groups[number]:
            yield from map(columns, read_split(split, reach, _COLUMNS, fail_on_data_loss=True))

    return read


def read_groups(
    groups: Sequence[Sequence[Split]], reach: ReachOptions, options: LakeOptions
) -> "Callable[[Iterable[RecordBatch]], Iterator[RecordBatch]]":
    """What a Python worker does: its input is the number of its group."""
    read_group = group_reader(groups, reach, options)

    def read(numbers: "Iterable[RecordBatch]") -> "Iterator[RecordBatch]":
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from read_group(number)

    return read


def groups_of(batch: Batch, reach: ReachOptions, tasks: int) -> list[list[Split]]:
    """The splits of each task, by where their records are now."""
    groups = cut(batch, tasks)
    if reach.buckets is None:
        return groups
    with connect(reach) as client:
        return place_groups(client, groups, reach)


def cut(batch: Batch, tasks: int) -> list[list[Split]]:
    """The batch's ranges in as many groups as there are tasks, equal in offsets."""
    size = max(1, -(-batch.offsets // tasks))
    groups: list[list[Split]] = [[] for _ in range(tasks)]
    done = 0
    for name, topic in sorted(batch.topics.items()):
        topic_id = "" if topic.id == NO_ID else topic.id
        for partition, (first, end) in sorted(topic.read.items()):
            at = first
            while at < end:
                stop = min(end, at + size - done % size)
                groups[done // size].append(Split(name, topic_id, partition, at, stop))
                done += stop - at
                at = stop
    return groups


def reader_options(batch: Batch, options: LakeOptions) -> dict[str, str]:
    """The options of the data source for a batch; both take the same."""
    ranges = {name: topic.read for name, topic in batch.topics.items() if topic.read}
    chosen = {
        **(_CONNECTOR_OPTIONS if options.source == "kafka" else {}),
        "kafka.isolation.level": "read_committed",
        "kafka.bootstrap.servers": options.bootstrap,
        "assign": json.dumps({name: sorted(read) for name, read in ranges.items()}),
        "startingOffsets": _offsets(ranges, 0),
        "endingOffsets": _offsets(ranges, 1),
        "includeHeaders": "true",
        # Records that retention removed before they were read are an error, not a silent hole.
        "failOnDataLoss": "true",
    }
    if options.rack is not None:
        chosen["kafka.client.rack"] = options.rack
    if options.buckets is not None:
        chosen |= options.buckets.words
    if options.access is not None:
        chosen |= _access_words(options)
    chosen.update({f"kafka.{key}": value for key, value in options.kafka.items()})
    return chosen


def _access_words(options: LakeOptions) -> dict[str, str]:
    """How either source reaches brokers. The connector gets a copy of what the file says: it has
    no file of its own, and Spark hides the values."""
    assert options.access is not None
    if options.source == "strandline":
        return {FILE: options.access.file}
    config = options.access.read()
    return {f"kafka.{key}": value for key, value in config.java_properties().items()}


def _offsets(ranges: Mapping[str, Mapping[int, tuple[int, int]]], which: int) -> str:
    return json.dumps(
        {
            name: {str(partition): ends[which] for partition, ends in read.items()}
            for name, read in ranges.items()
        }
    )
