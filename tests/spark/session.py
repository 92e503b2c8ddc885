"""One Spark session for all tests that need no job of their own: both Kafka sources, two cores."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from strandline.pipeline.runtime.java import Java
from strandline.pipeline.runtime.session import TABLE_SETTINGS

SETTINGS = {
    **TABLE_SETTINGS,
    "spark.master": "local[2]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}


@contextmanager
def open_spark(java: Java, jars: tuple[Path, ...], scratch: Path) -> Iterator[SparkSession]:
    """The session; its workers are this very Python."""
    os.environ["JAVA_HOME"] = str(java.home)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["SPARK_LOCAL_DIRS"] = str(scratch)
    builder = SparkSession.builder.appName("tests")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    builder = builder.config("spark.jars", ",".join(str(jar) for jar in jars))
    spark = builder.config("spark.sql.warehouse.dir", str(scratch / "warehouse")).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()
