"""The data source: what Spark calls for `format("strandline")`.

How:    Spark makes one object for each query from its options, asks for the schema, and pickles the
        object to where it plans and reads.
Source: PySpark's `DataSource`; decisions/0049."""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from strandline.base.errors import OperatorError
from strandline.spark.columns import columns_of, schema_of
from strandline.spark.reading.batch_reader import BatchReader
from strandline.spark.reading.options import parse_options
from strandline.spark.reading.stream_reader import StreamReader
from strandline.spark.writing.options import parse_write_options
from strandline.spark.writing.writer import BatchWriter, StreamWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMAT = "strandline"


class StrandlineSource(DataSource):
    """Topics of any Kafka-compatible cluster as rows."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def schema(self) -> StructType:
        """The columns that the options ask for."""
        return schema_of(parse_options(self.options).columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads a batch."""
        return BatchReader(parse_options(self.options), columns_of(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 (Spark's)
        """Reads a stream."""
        return StreamReader(parse_options(self.options), columns_of(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001
        """Appends a batch."""
        if overwrite:
            raise OperatorError('a topic is only appended to: use mode("append")')
        return BatchWriter(parse_write_options(self.options), schema)

    def streamWriter(  # noqa: N802 (Spark's)
        self,
        schema: StructType,
        overwrite: bool,  # noqa: FBT001
    ) -> DataSourceStreamWriter:
        """Appends each micro-batch of a stream, whatever its output mode."""
        return StreamWriter(parse_write_options(self.options), schema)


def register(spark: "SparkSession") -> None:
    """Make `format("strandline")` known to a session. Sessions whose Python has this package find
    it without: Spark looks into packages named `pyspark_*`."""
    spark.dataSource.register(StrandlineSource)
