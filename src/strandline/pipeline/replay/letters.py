"""A table of dead letters, and the mark of those that are on their way into their table.

Why:    two tables cannot change in one commit; a mark says how far a row got.
How:    the column `replay` is null, or "TABLE ID:n": part of replay n into that table.
Owns:   the column `replay`."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as in all of Spark's documentation)

from strandline.base.errors import OperatorError
from strandline.pipeline.lake.rows import DEAD_LETTER_COLUMNS
from strandline.pipeline.lake.writer import PLACE
from strandline.pipeline.runtime.overrides import overridden

MARK = "replay"
_VIEW = "strandline_replayed"
_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


def table_id(spark: SparkSession, table: str) -> str:
    """Delta's id of a table, which it keeps when it is moved."""
    row = spark.sql(f"DESCRIBE DETAIL {quoted(table)}").first()
    assert row is not None
    return str(row["id"])


def quoted(table: str) -> str:
    """A table's location as a name in SQL."""
    return "delta.`" + table.replace("`", "``") + "`"


class DeadLetters:
    """See the module. `metadata`: of its commits, which carry the lake job's progress on."""

    def __init__(self, spark: SparkSession, location: str, *, metadata: str) -> None:
        self._spark = spark
        self.location = location
        self._metadata = metadata
        missing = [name for name in DEAD_LETTER_COLUMNS if name not in self.read().columns]
        if missing:
            raise OperatorError(f"{location} has no column {missing[0]}: no table of dead letters")

    def read(self) -> DataFrame:
        """Its rows as of now."""
        return self._spark.read.format("delta").load(self.location)

    def marks(self) -> set[str]:
        """The marks that its rows have."""
        rows = self.read()
        if MARK not in rows.columns:
            return set()
        return {row[MARK] for row in rows.select(MARK).dropna().distinct().collect()}

    def marked(self, mark: str) -> DataFrame:
        """The rows with this mark."""
        return self.read().where(F.col(MARK) == mark)

    def mark(self, rows: DataFrame, mark: str) -> None:
        """Marks these rows, and no other."""
        name = quoted(self.location)
        if MARK not in self.read().columns:
            self._change(f"ALTER TABLE {quoted(self.location)} ADD COLUMNS ({MARK} STRING)")
        elif self.marks():
            self._change(
                f"UPDATE {quoted(self.location)} SET {MARK} = NULL WHERE {MARK} IS NOT NULL"
            )
        same = " AND ".join(f"t.`{each}` <=> s.`{each}`" for each in PLACE)
        rows.select(*PLACE).distinct().createOrReplaceTempView(_VIEW)
        try:
            self._change(
                f"MERGE INTO {name} t USING {_VIEW} s ON {same} "
                f"WHEN MATCHED THEN UPDATE SET {MARK} = '{mark}'"
            )
        finally:
            self._spark.catalog.dropTempView(_VIEW)

    def remove(self, condition: str) -> None:
        """Removes rows, in one commit."""
        self._change(f"DELETE FROM {quoted(self.location)} WHERE {condition}")

    def _change(self, statement: str) -> None:
        settings: Mapping[str, Any] = {_METADATA: self._metadata}
        with overridden(self._spark, settings):
            self._spark.sql(statement).collect()
