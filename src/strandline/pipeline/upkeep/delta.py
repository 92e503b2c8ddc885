"""What upkeep asks of Delta, for one table: its small files, OPTIMIZE, VACUUM, properties.

Why:    Delta has the statements; this file knows the settings without which they are slow, print
        on the console, or fill the log with commits of their own.
How:    SQL, with settings that hold for the one statement.
Source: https://docs.delta.io/latest/optimizations-oss.html,
        https://docs.delta.io/latest/delta-utility.html"""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as in all of Spark's documentation)

from strandline.pipeline.runtime.overrides import overridden
from strandline.pipeline.upkeep.compaction import SmallFiles
from strandline.pipeline.upkeep.options import HOUR_MS, UpkeepOptions

USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
EXPIRED_MARK = "_strandline/expired"
"""Below the table: its modification time is when VACUUM ran last."""

_VACUUM_SETTINGS: Mapping[str, str] = {
    # VACUUM makes as many tasks as this says; the default of 10,000 takes minutes on two cores.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
    # It would add two commits for each run.
    "spark.databricks.delta.vacuum.logging.enabled": "false",
    # The command line has its own bound.
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
}


class DeltaTable:
    """One table. Each statement is one commit, or none."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._spark = spark
        self._java: Any = spark._jvm
        self._location = location
        self._name = "delta.`" + location.replace("`", "``") + "`"

    def partition_types(self) -> dict[str, str]:
        """{partition column: its SQL type}, in order."""
        columns = self._detail("partitionColumns")
        types = self._spark.read.format("delta").load(self._location).schema
        return {name: types[name].dataType.simpleString() for name in columns}

    def small_files(self, columns: Sequence[str], *, below_bytes: int) -> list[SmallFiles]:
        """The table's files below this size, by partition."""
        files = DataFrame(self._snapshot().allFiles().toDF(), self._spark)
        grouped = (
            files.where(F.col("size") < below_bytes)
            .groupBy(*(F.col("partitionValues")[name].alias(name) for name in columns))
            .agg(F.count("*").alias("files"), F.sum("size").alias("bytes"))
        )
        return [SmallFiles(tuple(row[:-2]), row[-2], row[-1]) for row in grouped.collect()]

    def optimize(self, where: str, options: UpkeepOptions, *, metadata: str) -> tuple[int, int]:
        """Compacts the small files of the partitions in one commit; how many files it replaced,
        and by how many."""
        settings = {
            "spark.databricks.delta.optimize.minFileSize": str(options.small_bytes),
            "spark.databricks.delta.optimize.maxFileSize": str(options.target_bytes),
            USER_METADATA: metadata,
        }
        with overridden(self._spark, settings):
            row = self._spark.sql(f"OPTIMIZE {self._name}{where and f' WHERE {where}'}").first()
        assert row is not None
        return row["metrics"]["numFilesRemoved"], row["metrics"]["numFilesAdded"]

    def vacuum(self, *, keep_ms: int) -> None:
        """Deletes files that no snapshot of the last `keep_ms` uses, nor any running job."""
        with overridden(self._spark, _VACUUM_SETTINGS):
            self._spark.sql(f"VACUUM {self._name} RETAIN {keep_ms // HOUR_MS} HOURS")

    def expired_files(self, *, keep_ms: int) -> int:
        """How many files VACUUM would delete."""
        with overridden(self._spark, _VACUUM_SETTINGS):
            return self._spark.sql(
                f"VACUUM {self._name} RETAIN {keep_ms // HOUR_MS} HOURS DRY RUN"
            ).count()

    def set_properties(self, wanted: Mapping[str, str], *, metadata: str) -> None:
        """Sets table properties, in one commit if one of them differs."""
        have = self._detail("properties")
        changed = {key: value for key, value in wanted.items() if have.get(key) != value}
        if changed:
            words = ", ".join(f"'{key}' = '{value}'" for key, value in changed.items())
            with overridden(self._spark, {USER_METADATA: metadata}):
                self._spark.sql(f"ALTER TABLE {self._name} SET TBLPROPERTIES ({words})")

    def disk_use(self) -> tuple[int, int]:
        """How many files lie below the table's location, and their bytes, live or not; the log
        does not count."""
        (files, size), (log_files, log_size) = self._use(""), self._use("_delta_log")
        return files - log_files, size - log_size

    def expired_at_ms(self) -> int | None:
        """When VACUUM ran last; None: never."""
        system, path = self._file_system(EXPIRED_MARK)
        if not system.exists(path):
            return None
        return int(system.getFileStatus(path).getModificationTime())

    def note_expired(self) -> None:
        """Notes that VACUUM ran now."""
        system, path = self._file_system(EXPIRED_MARK)
        system.create(path, True).close()

    def _use(self, below: str) -> tuple[int, int]:
        system, path = self._file_system(below)
        summary = system.getContentSummary(path)
        return int(summary.getFileCount()), int(summary.getLength())

    def _snapshot(self) -> Any:
        log = self._java.org.apache.spark.sql.delta.DeltaLog.forTable(
            self._spark._jsparkSession, self._location
        )
        none = self._java.scala.Option.empty()
        return log.update(False, none, none)

    def _detail(self, column: str) -> Any:
        row = self._spark.sql(f"DESCRIBE DETAIL {self._name}").first()
        assert row is not None
        return row[column]

    def _file_system(self, below: str) -> tuple[Any, Any]:
        parts = (self._location, below) if below else (self._location,)
        path = self._java.org.apache.hadoop.fs.Path("/".join(parts))
        session: Any = self._spark._jsparkSession
        return path.getFileSystem(session.sessionState().newHadoopConf()), path
