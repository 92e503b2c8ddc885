"""A transaction of Delta's own that commits files which workers wrote.

Why:    Delta checks for conflicts, writes checkpoints, and accepts a batch's number once.
How:    it begins before the workers write, so that a change of the table meanwhile is a conflict.
        A new table gets its metadata in the same commit as its first rows.
Source: `WriteIntoDelta.scala` and `OptimisticTransaction.scala` of Delta 4.4."""

import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812  (as in all of Spark's documentation)

from strandline.pipeline.lake.progress import CommitId
from strandline.pipeline.values.evolution import relaxed

WRITER_VERSION_MAX = 2
"""Of Delta's protocol: later ones let a table ask more of a writer than files and statistics."""
_PLAIN_PROPERTIES = {
    "delta.checkpointInterval",
    "delta.deletedFileRetentionDuration",
    "delta.logRetentionDuration",
}
"""Properties that say nothing about how rows are written."""


def described(spark: SparkSession, table: str) -> tuple[T.StructType, tuple[str, ...]]:
    """(the type of a table's rows, its partition columns), without a query of Spark."""
    java: Any = spark._jvm
    log = java.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, table)
    metadata = log.startTransaction().metadata()
    names = java.scala.jdk.javaapi.CollectionConverters.asJava(metadata.partitionColumns())
    return T.StructType.fromJson(json.loads(metadata.schemaString())), tuple(names)


class Transaction:
    """See the module. `type`: of the rows, partition columns included."""

    def __init__(
        self, spark: SparkSession, table: str, row_type: T.StructType, partitioned_by: Sequence[str]
    ) -> None:
        java: Any = spark._jvm
        self._java = java
        self._delta = java.org.apache.spark.sql.delta
        log = self._delta.DeltaLog.forTable(spark._jsparkSession, table)
        self._transaction = log.startTransaction()
        self._type = row_type
        self._partitioned_by = tuple(partitioned_by)

    def has(self, commit: CommitId) -> bool:
        """Whether the table has the commit of this number, or a later one, already."""
        checksum = self._transaction.snapshot().checksumOpt()
        told = checksum.get().setTransactions() if checksum.isDefined() else None
        if told is None or not told.isDefined():
            return int(self._transaction.txnVersion(commit.application)) >= commit.number
        # The same as `txnVersion`, which reads the whole log by a query of Spark: Delta's checksum
        # of the newest commit names all applications.
        self._transaction.readTxn().addOne(commit.application)
        return any(
            each.appId() == commit.application and each.version() >= commit.number
            for each in self._listed(told.get())
        )

    def takes_files(self) -> bool:
        """Whether the table is new, or its rows are those of the job and nothing more is asked of
        its writers."""
        if self._is_new:
            return True
        metadata = self._transaction.metadata()
        table = T.StructType.fromJson(json.loads(metadata.schemaString()))
        return (
            self._transaction.protocol().minWriterVersion() <= WRITER_VERSION_MAX
            and set(self._listed(metadata.configuration())) <= _PLAIN_PROPERTIES
            and tuple(self._listed(metadata.partitionColumns())) == self._partitioned_by
            and not any(field.metadata for field in table.fields)
            and _types(table) == _types(self._type)
        )

    def commit(
        self, actions: Iterable[str], commit: CommitId, *, properties: Mapping[str, str]
    ) -> None:
        """Adds files. `actions`: `add`s of Delta's log, as JSON; `properties`: of a new table."""
        from_json = getattr(getattr(self._delta.actions, "Action$"), "MODULE$").fromJson
        if self._is_new:
            self._transaction.updateMetadata(from_json(self._metadata(properties)), False)
        number = {
            "appId": commit.application,
            "version": commit.number,
            "lastUpdated": time.time_ns() // 1_000_000,
        }
        found = [from_json(action) for action in (json.dumps({"txn": number}), *actions)]
        some, none = self._java.scala.Option.apply, self._java.scala.Option.empty
        operation = getattr(self._delta, "DeltaOperations$Write")(
            self._java.org.apache.spark.sql.SaveMode.Append,
            some(self._seq(self._partitioned_by)),
            none(),
            some(commit.metadata),
            *(none() for _ in range(5)),
        )
        self._transaction.commit(self._seq(found), operation)

    @property
    def _is_new(self) -> bool:
        return int(self._transaction.readVersion()) < 0

    def _metadata(self, properties: Mapping[str, str]) -> str:
        found = {
            "id": str(uuid.uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": relaxed(self._type).json(),
            "partitionColumns": list(self._partitioned_by),
            "configuration": dict(properties),
            "createdTime": time.time_ns() // 1_000_000,
        }
        return json.dumps({"metaData": found})

    def _listed(self, items: Any) -> Any:
        """A Scala collection for Python."""
        return self._java.scala.jdk.javaapi.CollectionConverters.asJava(items)

    def _seq(self, items: Iterable[Any]) -> Any:
        """A Scala sequence."""
        found = self._java.java.util.ArrayList()
        for item in items:
            found.add(item)
        return self._java.scala.jdk.javaapi.CollectionConverters.asScala(found).toSeq()


def _types(data_type: T.StructType) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in data_type.fields}
