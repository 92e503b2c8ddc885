"""Reads topics as a batch: `spark.read.format("strandline")`.

How:    Spark calls `partitions` where it plans, and `read` for each split on an executor, on a copy
        of this object.
Source: PySpark's `DataSourceReader`."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from strandline.spark.reading.cluster import connect
from strandline.spark.reading.filters import Pruning
from strandline.spark.reading.options import ReadOptions
from strandline.spark.reading.pushdown import OptionalPushDown
from strandline.spark.reading.ranges import plan_ranges
from strandline.spark.reading.split_reading import read_partition
from strandline.spark.reading.splits import split_ranges
from strandline.spark.reading.tiers import cluster_reader, place_splits

if TYPE_CHECKING:
    from pyarrow import RecordBatch


class BatchReader(DataSourceReader):
    """See the module."""

    pushFilters = OptionalPushDown()  # noqa: N815 (Spark's name)

    def __init__(self, options: ReadOptions, columns: tuple[str, ...]) -> None:
        options.check_batch()
        self._options = options
        self._columns = columns
        self._pruning = Pruning()

    def take_filters(self, filters: Sequence[Filter]) -> None:
        """Narrow what is read; Spark still applies the filters."""
        self._pruning = Pruning(filters)

    def __getstate__(self) -> dict[str, object]:
        """Executors get splits that are narrowed already."""
        return {**self.__dict__, "_pruning": None}

    def partitions(self) -> Sequence[InputPartition]:
        """One split for each task. Spark gets a list; none means that there is nothing."""
        options = self._options
        with connect(options.reach) as client:
            cluster = cluster_reader(client, options.reach)
            cluster.require_readable(cluster.topics(options.subscription, missing_ok=True))
            ranges = self._pruning.apply(plan_ranges(cluster, options), cluster.offsets)
            return place_splits(client, split_ranges(ranges, options), options.reach)

    def read(self, partition: InputPartition) -> Iterator["RecordBatch"]:
        """The records of one split."""
        return read_partition(partition, self._options, self._columns)
