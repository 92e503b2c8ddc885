"""A batch's records as a data frame, by one of two data sources.

Why:    a batch is a set of ranges of offsets; the source must read exactly these or fail.
How:    `assign` with starting and ending offsets; records that are gone are an error, aborted
        transactions are left out."""

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from strandline.pipeline.lake.options import LakeOptions
from strandline.pipeline.lake.progress import Batch
from strandline.spark.source import register

# The connector asks ListOffsets twice after every poll; polls of 500 records, the default, halve
# its speed.
_CONNECTOR_OPTIONS = {
    "kafka.max.poll.records": "20000",
    "kafka.max.partition.fetch.bytes": str(8 << 20),
    "kafka.default.api.timeout.ms": "60000",
}


def read_batch(spark: SparkSession, batch: Batch, options: LakeOptions, *, tasks: int) -> DataFrame:
    """The records of a batch that has some, in at least `tasks` tasks."""
    chosen = reader_options(batch, options) | {"minPartitions": str(tasks)}
    if options.source == "strandline":
        register(spark)
    return spark.read.format(options.source).options(**chosen).load()


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
    chosen.update({f"kafka.{key}": value for key, value in options.kafka.items()})
    return chosen


def _offsets(ranges: Mapping[str, Mapping[int, tuple[int, int]]], which: int) -> str:
    return json.dumps(
        {
            name: {str(partition): ends[which] for partition, ends in read.items()}
            for name, read in ranges.items()
        }
    )
