"""`strandline pipeline upkeep`: compacts a table's small files and expires its old snapshots."""

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from strandline.base.errors import OperatorError
from strandline.pipeline.commands.options import (
    ConfOption,
    JarsOption,
    JsonOption,
    MasterOption,
    TableArgument,
    session_options,
)
from strandline.pipeline.commands.output import screen, write_json, write_line
from strandline.pipeline.commands.upkeep_options import (
    KEEP_HOURS_DEFAULT,
    SMALL_FILES_DEFAULT,
    SMALL_MIB_DEFAULT,
    TARGET_MIB_DEFAULT,
    DryRunOption,
    KeepHoursOption,
    SmallFilesOption,
    SmallMibOption,
    TargetMibOption,
)
from strandline.pipeline.lake.lock import hold_in_java, table_lock
from strandline.pipeline.lake.run import Upkeep
from strandline.pipeline.locations import existing_table, is_local
from strandline.pipeline.runtime.session import LOCAL_MASTER, open_session
from strandline.pipeline.upkeep.options import UpkeepOptions, upkeep_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from strandline.pipeline.runtime.session import SessionOptions
    from strandline.pipeline.upkeep.table import UpkeepResult


def upkeep(
    table: TableArgument,
    *,
    small_files: SmallFilesOption = SMALL_FILES_DEFAULT,
    small_mib: SmallMibOption = SMALL_MIB_DEFAULT,
    target_mib: TargetMibOption = TARGET_MIB_DEFAULT,
    keep_hours: KeepHoursOption = KEEP_HOURS_DEFAULT,
    dry_run: DryRunOption = False,
    master: MasterOption = LOCAL_MASTER,
    jars: JarsOption = None,
    conf: ConfOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compact a table's small files, and delete the files of snapshots that are too old."""
    options = upkeep_options(
        small_files=small_files, small_mib=small_mib, target_mib=target_mib, keep_hours=keep_hours
    )
    location = existing_table(table)
    session = session_options(f"upkeep {location}", master=master, jars=jars, conf=conf)
    with screen().status("starting Spark"):
        result = _upkeep(location, options, session, dry_run=dry_run)
    if as_json:
        write_json({**asdict(result), "dry_run": dry_run})
        return
    for line in result_lines(result, dry_run=dry_run):
        write_line(line)


def _upkeep(
    location: str, options: UpkeepOptions, session: "SessionOptions", *, dry_run: bool
) -> "UpkeepResult":
    with ExitStack() as stack:
        lock = None
        if is_local(location) and not dry_run:
            lock = stack.enter_context(table_lock(Path(location)))
        spark = stack.enter_context(open_session(session))
        from strandline.pipeline.upkeep.table import keep_up, look_over

        if dry_run:
            return look_over(spark, location, options)
        kept = None if lock is None else hold_in_java(spark, lock)
        result = keep_up(spark, location, options)
        del kept
        return result


def plan_upkeep(every_batches: int, *, keep_hours: int) -> Upkeep:
    """Upkeep within a job that fills the table, after every so many of its batches."""
    if every_batches < 0:
        raise OperatorError(f"--upkeep {every_batches}: must be 0 or more")
    options = upkeep_options(
        small_files=SMALL_FILES_DEFAULT,
        small_mib=SMALL_MIB_DEFAULT,
        target_mib=TARGET_MIB_DEFAULT,
        keep_hours=keep_hours,
    )

    def run(spark: "SparkSession | None", table: str) -> str:
        from strandline.pipeline.upkeep.table import keep_up_in_turn

        assert spark is not None
        result = keep_up_in_turn(spark, table, options)
        return "" if result.is_nothing else result_lines(result, dry_run=False)[0]

    return Upkeep(every_batches, run)


def result_lines(result: "UpkeepResult", *, dry_run: bool) -> list[str]:
    """A round for people."""
    if result.is_nothing:
        return [f"{result.table}: nothing to do"]
    lines = []
    if result.files_before:
        into = "" if dry_run else f" became {result.files_after:,}"
        what = "would be compacted" if dry_run else ""
        lines.append(
            f"{result.files_before:,} small files of {result.partitions:,} partitions"
            f"{into}{what and f' {what}'}"
        )
    if result.expired_files:
        if dry_run:
            lines.append(f"{result.expired_files:,} files of old snapshots would be deleted")
        else:
            lines.append(
                f"{result.expired_files:,} files of old snapshots deleted, "
                f"{result.expired_bytes / (1 << 20):,.1f} MiB"
            )
    if result.litter:
        verb = "would be removed" if dry_run else "removed"
        lines.append(f"{result.litter:,} files that killed jobs left in the log {verb}")
    return [f"{result.table}: {'; '.join(lines)}"]
