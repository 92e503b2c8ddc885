"""One round of upkeep of one table.

Why:    a table stays fast without a second job beside the one that fills it.
How:    properties -> compaction, one commit for some partitions -> VACUUM -> litter of the log.
        Each commit carries the lake job's progress on; it adds and removes no row. A round that is
        killed between two of these steps leaves a table with the same rows.
Owns:   nothing of its own; the caller holds the table's lock.
Source: decisions/0055."""

import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from strandline.base.errors import OperatorError
from strandline.pipeline.lake.progress import carry_on, read_state
from strandline.pipeline.lake.writer import open_log
from strandline.pipeline.locations import is_local
from strandline.pipeline.upkeep.compaction import predicates, worth_compacting
from strandline.pipeline.upkeep.delta import DeltaTable
from strandline.pipeline.upkeep.litter import log_litter, remove_litter
from strandline.pipeline.upkeep.options import DAY_MS, HOUR_MS, UpkeepOptions

EXPIRE_EVERY_MS = DAY_MS
"""A job expires snapshots no more often: each time it lists all files below the table."""


@dataclass(frozen=True, slots=True)
class UpkeepResult:
    """What a round did, or would do."""

    table: str
    partitions: int
    """Partitions of the table whose small files it compacted."""
    files_before: int
    files_after: int
    """How many small files it replaced, and by how many; in a dry run `files_after` is 0."""
    expired_files: int
    expired_bytes: int
    """What it deleted from the disk; a dry run does not know the bytes."""
    litter: int

    @property
    def is_nothing(self) -> bool:
        """Whether there was nothing to do."""
        return not (self.files_before or self.expired_files or self.litter)


def keep_up(
    spark: SparkSession, table: str, options: UpkeepOptions, *, expire: bool = True
) -> UpkeepResult:
    """Does a round; without `expire` it deletes no file of the table."""
    delta = DeltaTable(spark, table)
    delta.set_properties(_properties(options), metadata=_carried(spark, table))
    types = delta.partition_types()
    found = delta.small_files(list(types), below_bytes=options.small_bytes)
    chosen = worth_compacting(found, small_files=options.small_files)
    before = after = 0
    for where in predicates(chosen, types):
        removed, added = delta.optimize(where, options, metadata=_carried(spark, table))
        before, after = before + removed, after + added
    files = size = litter = 0
    if expire:
        files, size = _expire(delta, options)
    if is_local(table):
        litter = remove_litter(Path(table))
    return UpkeepResult(table, len(chosen), before, after, files, size, litter)


def keep_up_in_turn(
    spark: SparkSession, table: str, options: UpkeepOptions, *, now_ms: int | None = None
) -> UpkeepResult:
    """A round within a job that fills the table; it expires snapshots once a day."""
    now_ms = round(time.time() * 1000) if now_ms is None else now_ms
    delta = DeltaTable(spark, table)
    last_ms = delta.expired_at_ms()
    if last_ms is None:
        delta.note_expired()  # A new table has nothing that is old enough.
    expire = last_ms is not None and now_ms - last_ms >= EXPIRE_EVERY_MS
    return keep_up(spark, table, options, expire=expire)


def look_over(spark: SparkSession, table: str, options: UpkeepOptions) -> UpkeepResult:
    """What a round would do; changes nothing."""
    delta = DeltaTable(spark, table)
    types = delta.partition_types()
    found = delta.small_files(list(types), below_bytes=options.small_bytes)
    chosen = worth_compacting(found, small_files=options.small_files)
    expired = delta.expired_files(keep_ms=options.keep_ms)
    litter = len(log_litter(Path(table))) if is_local(table) else 0
    return UpkeepResult(
        table, len(chosen), sum(each.count for each in chosen), 0, expired, 0, litter
    )


def _expire(delta: DeltaTable, options: UpkeepOptions) -> tuple[int, int]:
    files, size = delta.disk_use()
    delta.vacuum(keep_ms=options.keep_ms)
    files_left, size_left = delta.disk_use()
    delta.note_expired()
    return max(0, files - files_left), max(0, size - size_left)


def _properties(options: UpkeepOptions) -> dict[str, str]:
    """The log and the files of old snapshots are kept equally long."""
    kept = f"interval {options.keep_ms // HOUR_MS} hours"
    return {"delta.logRetentionDuration": kept, "delta.deletedFileRetentionDuration": kept}


def _carried(spark: SparkSession, table: str) -> str:
    log = open_log(spark, table)
    assert log is not None
    try:
        return carry_on(read_state(log, table))
    except OperatorError:
        return ""  # Not a lake table, or one whose progress is lost already.
