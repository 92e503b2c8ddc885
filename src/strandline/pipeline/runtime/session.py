"""A Spark session on this machine, on a cluster, or inside spark-submit, for the same jobs.

Why:    a job must not know where it runs; what differs is the master, the jars and the flags of
        one Java machine.
How:    on this machine Spark starts within the Python process's reach, with settings that favour
        a quick start over long runs. Under spark-submit master, jars and flags are its own, and
        only the table format is added.
Owns:   the one SparkSession of the process, from `open_session` until its block ends, and
        Spark's log file."""

import logging
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from strandline.base.errors import OperatorError
from strandline.pipeline.runtime.jars import ensure_jars
from strandline.pipeline.runtime.java import find_java
from strandline.pipeline.runtime.resolvers import default_resolvers
from strandline.pipeline.runtime.spark_errors import check_master, summarize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL_MASTER = "local[*]"

TABLE_SETTINGS: Mapping[str, str] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    # By default Spark writes INT96, from which other readers make nanoseconds in 64 bits: they read
    # another year for 9999-12-31, or fail.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
"""What every job needs, wherever it runs."""

# Each shortens a job of seconds; together they halve it. A job of hours sets them back by --conf.
_LOCAL_SETTINGS: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.shuffle.compress": "false",
    "spark.rdd.compress": "false",
    "spark.databricks.delta.snapshotPartitions": "2",
    # Hadoop's local file system writes a checksum file beside each file, and nothing reads them.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
}

# They print each error, with its Java stack as one line of JSON, before a caller can handle it.
_ERROR_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
# They log a traceback if Java is gone; the caller gets the error, and tells it in one line.
_BRIDGE_LOGGERS = ("py4j", "py4j.clientserver", "py4j.java_gateway")


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """Where a job runs."""

    name: str
    jars_directory: Path
    master: str = LOCAL_MASTER
    conf: Mapping[str, str] = field(default_factory=dict)
    """Spark settings that override every other."""

    def __post_init__(self) -> None:
        if not is_submitted():  # Else the master is that of spark-submit.
            check_master(self.master)


def is_submitted(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether spark-submit started this process, which then has a Java machine of its own."""
    return "PYSPARK_GATEWAY_PORT" in environment


def plan_settings(
    options: SessionOptions, *, jars: Sequence[Path], submitted: bool
) -> dict[str, str]:
    """Every Spark setting of the session, the later overriding the earlier."""
    settings = {"spark.app.name": options.name, **TABLE_SETTINGS}
    if not submitted:
        settings["spark.master"] = options.master
        settings["spark.jars"] = ",".join(str(path.absolute()) for path in jars)
        if options.master.startswith("local"):
            settings.update(_LOCAL_SETTINGS)
            settings["spark.sql.shuffle.partitions"] = str(os.cpu_count() or 1)
            # Spark makes this directory if it is missing, by default where the user stands.
            settings["spark.sql.warehouse.dir"] = tempfile.gettempdir()
    settings.update(options.conf)
    return settings


@contextmanager
def open_session(options: SessionOptions) -> Iterator["SparkSession"]:
    """The session, stopped at the end. What Spark refuses or fails at becomes one OperatorError.

    Spark's own log goes to a temporary file, named in the error and removed when all went well.
    """
    submitted = is_submitted()
    jars: list[Path] = []
    if not submitted:
        java = find_java()
        os.environ["JAVA_HOME"] = str(java.home)
        if options.master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        jars = ensure_jars(options.jars_directory, default_resolvers(java))
    settings = plan_settings(options, jars=jars, submitted=submitted)
    with _log_file(submitted=submitted) as log, _spark_errors(log):
        spark = _start(settings, log)
        try:
            yield spark
        finally:
            spark.stop()


def _start(settings: Mapping[str, str], log: Path | None) -> "SparkSession":
    try:
        from pyspark.logger import PySparkLogger
        from pyspark.sql import SparkSession
    except ImportError:
        raise OperatorError(
            "PySpark is not installed: pip install 'strandline[pipeline]'"
        ) from None
    for name in _ERROR_LOGGERS:
        PySparkLogger.getLogger(name).disabled = True
    for name in _BRIDGE_LOGGERS:
        logging.getLogger(name).disabled = True
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    if log is None:
        return _quiet(builder.getOrCreate())
    with _output_to(log):  # The Java machine starts here and keeps these for its life.
        return _quiet(builder.getOrCreate())


def _quiet(spark: "SparkSession") -> "SparkSession":
    """The same session, whose server of accumulators prints no traceback if Java is gone."""
    server = getattr(spark.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None
    return spark


@contextmanager
def _log_file(*, submitted: bool) -> Iterator[Path | None]:
    """Spark's log; it stays only if the error names it."""
    if submitted:
        yield None
        return
    descriptor, name = tempfile.mkstemp(prefix="strandline-spark-", suffix=".log")
    os.close(descriptor)
    try:
        yield Path(name)
    except OperatorError as error:
        if name not in str(error):
            Path(name).unlink(missing_ok=True)
        raise
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    Path(name).unlink(missing_ok=True)


@contextmanager
def _spark_errors(log: Path | None) -> Iterator[None]:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        where = "" if log is None else f" (Spark's log: {log})"
        raise OperatorError(f"Spark: {summarize(str(error))}{where}") from error


@contextmanager
def _output_to(path: Path) -> Iterator[None]:
    """Children started in the block inherit a stdout and a stderr that end in the file: Delta
    prints on both, and our stdout may be one JSON object."""
    saved = {}
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        stream.flush()
        saved[number] = os.dup(number)
    try:
        with path.open("ab") as file:
            for number in saved:
                os.dup2(file.fileno(), number)
        yield
    finally:
        for number, copy in saved.items():
            os.dup2(copy, number)
            os.close(copy)
