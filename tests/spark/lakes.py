"""Lake jobs in the session that tests share, and readings of their tables."""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import deltalake
from pyspark.sql import SparkSession
from tests.spark.jobs import Cluster as Place

from strandline.pipeline.lake.cluster import Cluster
from strandline.pipeline.lake.job import LakeJob, Watch, Written
from strandline.pipeline.lake.options import LakeOptions, PartitionColumn, ValueSchema
from strandline.pipeline.lake.writer import TableWriter, open_log
from strandline.pipeline.values.ddl import parse_ddl


def lake_options(
    cluster: Place, table: Path, *topics: str, schema: str = "", **changes: object
) -> LakeOptions:
    """A job's options; `schema` is DDL."""
    values = ValueSchema(Path("values.ddl"), parse_ddl(schema)) if schema else None
    plain = LakeOptions(
        bootstrap=cluster.bootstrap,
        topics=topics,
        table=str(table),
        schema=values,
        partition_by=(PartitionColumn("bucket", "pmod(offset, 2)"),),
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


class Lake:
    """One job, from its first look to its last batch."""

    def __init__(
        self, spark: SparkSession, options: LakeOptions, writer: type[TableWriter] = TableWriter
    ) -> None:
        self.told: list[Written] = []
        self.notices: list[str] = []
        watch = Watch(on_batch=self.told.append, on_notice=self.notices.append)
        self._cluster = Cluster(options.bootstrap)
        self.job = LakeJob(options, self._cluster, stop=Event(), watch=watch)
        dead = options.dead_letters
        log = None if dead is None else open_log(spark, dead)
        self.writer = writer(spark, options)
        with ExitStack() as on_failure:
            on_failure.enter_context(self._cluster)
            self.job.look(open_log(spark, options.table), log)
            self.job.open(self.writer, log)
            on_failure.pop_all()

    def finish(self) -> list[Written]:
        """Every batch up to the end of now."""
        with self._cluster:
            while self.job.step(self.writer):
                pass
        return self.told

    def step_once(self) -> None:
        """One batch, and then the process is gone."""
        with self._cluster:
            assert self.job.step(self.writer)


def fill(spark: SparkSession, options: LakeOptions) -> list[Written]:
    """One run."""
    return Lake(spark, options).finish()


def rows(table: Path | str, *columns: str) -> list[tuple[Any, ...]]:
    """Columns of every row, sorted, by delta-rs."""
    found = deltalake.DeltaTable(str(table)).to_pyarrow_table(columns=list(columns))
    return sorted(zip(*(found[column].to_pylist() for column in columns), strict=True), key=repr)
