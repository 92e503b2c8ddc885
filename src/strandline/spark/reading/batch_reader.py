"""Reads topics as a batch: `spark.read.format("strandline")`.

How:    Spark calls `partitions` where it plans, and `read` for each split on an executor, on a copy
        of this object.
Source: PySpark's `DataSourceReader`."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from strandline.spark.reading.cluster import ClusterReader, connect
from strandline.spark.reading.options import ReadOptions
from strandline.spark.reading.ranges import plan_ranges
from strandline.spark.reading.split_reading import read_split
from strandline.spark.reading.splits import Split, split_ranges

if TYPE_CHECKING:
    from pyarrow import RecordBatch


class BatchReader(DataSourceReader):
    """See the module."""

    def __init__(self, options: ReadOptions, columns: tuple[str, ...]) -> None:
        options.check_batch()
        self._options = options
        self._columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        """One split for each task. Spark gets a list; none means that there is nothing."""
        options = self._options
        with connect(options.reach) as client:
            cluster = ClusterReader(client, read_committed=options.reach.read_committed)
            return split_ranges(plan_ranges(cluster, options), options)

    def read(self, partition: InputPartition) -> Iterator["RecordBatch"]:
        """The records of one split."""
        # Spark plans one partition without content if `partitions` returns none.
        if not isinstance(partition, Split):
            return iter(())
        options = self._options
        return read_split(
            partition,
            options.reach,
            self._columns,
            fail_on_data_loss=options.fail_on_data_loss,
        )
