"""Replays dead letters: those that fit now become rows of the table, exactly once.

Why:    a record must be in the table or among the dead letters, never in both nor in neither.
How:
            dead letters             table                        dead letters
            {mark n: those that fit} -> {their rows, txn n}    -> {without those of mark n}
              killed: n is chosen       killed: the next run
              anew                      removes mark n first

        Delta accepts `txn` n of the application "strandline-replay-ID" once, ID being that of the
        dead letters. The table's snapshot tells the last one: marks up to it are in the table,
        later ones are not.
Owns:   the order of the commits.
Source: decisions/0055."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as in all of Spark's documentation)

from strandline.base.errors import OperatorError
from strandline.pipeline.lake import rows as rows_of
from strandline.pipeline.lake.options import Mode, ValueSchema
from strandline.pipeline.lake.progress import CommitId, TableState, carry_on, read_state
from strandline.pipeline.lake.upsert import TOMBSTONE_PROBLEM, superseded
from strandline.pipeline.lake.writer import TableWriter, open_log
from strandline.pipeline.replay.letters import MARK, DeadLetters, table_id
from strandline.pipeline.replay.options import options_of


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What a replay did."""

    finished: int
    """Dead letters of an earlier replay, already in the table, which it removed."""
    replayed: int
    """Rows that it added."""
    superseded: int
    """Records that fit, and whose key a newer tombstone deleted."""
    left: int
    """Dead letters that still do not fit."""
    changes: tuple[str, ...]
    """What it changed in the table's type."""


class Replay:
    """One replay; the caller holds the locks of both tables."""

    def __init__(
        self,
        spark: SparkSession,
        *,
        dead_letters: str,
        table: str,
        schema: ValueSchema | None,
        mode: Mode,
    ) -> None:
        self._spark = spark
        self._table = table
        self._state = _state(spark, table)
        self._options = options_of(
            table, self._state, dead_letters=dead_letters, schema=schema, mode=mode
        )
        dead = _state(spark, dead_letters)
        self._letters = DeadLetters(spark, dead_letters, metadata=carry_on(dead))
        self._application = f"strandline-replay-{table_id(spark, dead_letters)}"
        self._table_id = table_id(spark, table)
        self._check_job(dead)

    def run(self) -> ReplayResult:
        """Moves every dead letter that fits; raises OperatorError before it changes anything if
        the table cannot take the rows."""
        self._check_marks()
        done = self.done()
        finished = self._finish(done)
        fits = self._fitting(self._letters.read())
        total = fits.count()
        if not total:
            return ReplayResult(finished, 0, 0, self._count_left(), ())
        writer = TableWriter(self._spark, self._options)
        changes = writer.prepare(exists=True)
        mark = self._mark(done + 1)
        self._letters.mark(fits, mark)
        rows = self._fitting(self._letters.marked(mark))
        if rows.count() != self._letters.marked(mark).count():
            raise OperatorError(
                f"{self._letters.location} has two dead letters of one offset, and only one fits"
            )
        late = 0
        if self._options.upsert:
            late = self._is_superseded(rows).count()
            rows = self._is_superseded(rows, keep=False)
        commit = CommitId(self._application, done + 1, carry_on(_state(self._spark, self._table)))
        writer.replay(rows, commit)
        if self.done() != done + 1:
            raise OperatorError(f"{self._table}: another replay ran at the same moment: run again")
        self._finish(done + 1)
        return ReplayResult(finished, total - late, late, self._count_left(), tuple(changes))

    def done(self) -> int:
        """The last replay whose rows are in the table; -1: none."""
        java: Any = self._spark._jvm
        log = java.org.apache.spark.sql.delta.DeltaLog.forTable(
            self._spark._jsparkSession, self._table
        )
        none = java.scala.Option.empty()
        found = log.update(False, none, none).transactions().get(self._application)
        return int(found.get()) if found.isDefined() else -1

    def _fitting(self, letters: DataFrame) -> DataFrame:
        """The dead letters that fit, decoded."""
        real = letters.where(F.col("problem") != TOMBSTONE_PROBLEM)
        return rows_of.decoded(rows_of.records_of(real, self._options), self._options).where(
            ~F.col("is_dead")
        )

    def _is_superseded(self, rows: DataFrame, *, keep: bool = True) -> DataFrame:
        tombstones = self._letters.read().where(F.col("problem") == TOMBSTONE_PROBLEM)
        return superseded(rows, tombstones, keep=keep)

    def _finish(self, done: int) -> int:
        """Removes dead letters whose rows are in the table."""
        found = sorted(mark for mark in self._letters.marks() if _number(mark) <= done)
        count = sum(self._letters.marked(mark).count() for mark in found)
        for mark in found:
            self._letters.remove(f"{MARK} = '{mark}'")
        if found and not self._count_left():
            self._letters.remove(f"problem = '{TOMBSTONE_PROBLEM}'")
        return count

    def _count_left(self) -> int:
        return self._letters.read().where(F.col("problem") != TOMBSTONE_PROBLEM).count()

    def _mark(self, number: int) -> str:
        return f"{self._table_id}:{number}"

    def _check_marks(self) -> None:
        others = [one for one in self._letters.marks() if not one.startswith(f"{self._table_id}:")]
        if others:
            raise OperatorError(
                f"{self._letters.location}: a replay into another table (Delta's id "
                f"{others[0].rpartition(':')[0]}) was not finished: run that one again first"
            )

    def _check_job(self, dead: TableState) -> None:
        assert self._state.batch is not None
        if dead.batch is not None and dead.batch.job != self._state.batch.job:
            raise OperatorError(
                f"{self._letters.location} holds dead letters of job {dead.batch.job}, and "
                f"{self._table} was filled by {self._state.batch.job}: name its own table"
            )
        if dead.batch is not None and dead.batch.number > self._state.batch.number:
            raise OperatorError(
                f"{self._table}: its job was killed in the middle of batch {dead.batch.number}: "
                "run lake once more, then replay"
            )


def _number(mark: str) -> int:
    return int(mark.rpartition(":")[2])


def _state(spark: SparkSession, table: str) -> TableState:
    log = open_log(spark, table)
    assert log is not None
    return read_state(log, table)
