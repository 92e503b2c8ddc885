"""Splits ranges of offsets into tasks, so that all cores work also on one large partition.

How:    a split is at most `maxRecordsPerPartition` offsets; smaller if `minPartitions` asks for
        more tasks. Without either, there are as many splits as cores where the read is planned,
        none of them below SPLIT_OFFSETS_MIN offsets.
Source: decisions/0049; spark.md, "no preferred locations"."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from pyspark.sql.datasource import InputPartition

from strandline.spark.reading.options import ReadOptions
from strandline.spark.reading.ranges import OffsetRange
from strandline.tiered.segments.entry import SegmentEntry

SPLIT_OFFSETS_MIN = 50_000
"""A smaller split costs more to start than to read."""
BROKERS = "brokers"
"""The place of splits that are fetched from brokers."""
BUCKETS = "buckets"
"""The place of splits that are fetched from buckets: see `tiers.py`."""


@dataclass
class Split(InputPartition):
    """Offsets [start, end) of one partition, for one task. `place`: where its bytes are."""

    topic: str
    topic_id: str
    partition: int
    start: int
    end: int
    place: str = BROKERS
    objects: Mapping[str, tuple[SegmentEntry, ...]] = field(default_factory=dict)
    """{bucket: its objects that have all of these offsets}, for splits of buckets."""


def split_ranges(
    ranges: Sequence[OffsetRange], options: ReadOptions, *, cores: int | None = None
) -> list[Split]:
    """The splits of all ranges; as long as each other within a range, in order."""
    total = sum(one.end - one.start for one in ranges)
    if not total:
        return []
    size = options.records_per_task_max
    if options.partitions_min is not None:
        size = min(size, max(total // options.partitions_min, 1))
    else:
        fair = -(-total // (cores or os.cpu_count() or 1))
        size = min(size, max(fair, SPLIT_OFFSETS_MIN))
    return [split for one in ranges for split in _split(one, size)]


def _split(one: OffsetRange, size: int) -> list[Split]:
    length = one.end - one.start
    count = -(-length // size)
    edges = [one.start + length * number // count for number in range(count + 1)]
    return [
        Split(one.topic, one.topic_id, one.partition, start, end) for start, end in pairwise(edges)
    ]
