"""A table's log through Spark's own file systems, for every location that a table can have.

Why:    a table may lie in an object store or in HDFS; Spark already knows how to reach it."""

from typing import Any

from pyspark.sql import SparkSession


class HadoopLog:
    """See delta_log.LogFiles."""

    def __init__(self, spark: SparkSession, table: str) -> None:
        java: Any = spark.sparkContext._jvm
        assert java is not None
        self._java = java
        self._root = java.org.apache.hadoop.fs.Path(f"{table}/_delta_log")
        self._system = self._root.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())

    def names(self) -> list[str]:
        """The names of all files; empty if there is no table."""
        if not self._system.exists(self._root):
            return []
        return [status.getPath().getName() for status in self._system.listStatus(self._root)]

    def read(self, name: str) -> str:
        """The text of one file."""
        stream = self._system.open(self._java.org.apache.hadoop.fs.Path(self._root, name))
        try:
            content = self._java.org.apache.hadoop.thirdparty.com.google.common.io.ByteStreams
            return bytes(content.toByteArray(stream)).decode("utf-8")
        finally:
            stream.close()
