"""One job at a time for a table on a local disk.

Why:    two jobs that commit at the same moment would race for the log; on a local disk Delta's
        rename is not atomic across processes. In object stores and HDFS it is, and Delta's `txn`
        decides which job wins.
How:    TABLE/_strandline/lock, names that begin with `_` being no part of a table. A driver holds
        a lock on byte 0 until it ends, its Java machine one on byte 1: when a driver is killed,
        Java may go on for a moment and could still commit. The kernel frees both locks when their
        processes are gone, also after kill -9.
Owns:   the lock file, and directories that it had to make for it."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from strandline.base.errors import OperatorError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_END_S = 60
"""How long a job waits for the Java machine of a driver that was killed."""
_POLL_S = 0.1
_DRIVER, _JAVA = 0, 1


@contextmanager
def table_lock(table: Path) -> Iterator[Path]:
    """Holds the table's lock; yields its file. OperatorError names the job that holds it. A run
    that writes no table leaves no directory."""
    folder = table / "_strandline"
    made = [path for path in (table, folder) if not path.exists()]
    path = folder / "lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = path.open("a+")
    except OSError as error:
        raise OperatorError(
            f"{table}: cannot write here: {error.strerror}: choose another directory"
        ) from error
    try:
        with file:
            _hold(file, table)
            _check_there(file, path, table)
            try:
                yield path
            finally:
                if not (table / "_delta_log").exists():
                    path.unlink(missing_ok=True)
    finally:
        for each in reversed(made):
            with suppress(OSError):  # Not empty: then it is in use.
                each.rmdir()


def _hold(file: IO[str], table: Path) -> None:
    if not _try_lock(file, _DRIVER):
        file.seek(0)
        raise OperatorError(
            f"{table}: another job is writing this table (process {file.read().strip() or '?'}): "
            "wait until it ends, or stop it"
        )
    until = time.monotonic() + JAVA_END_S
    while not _try_lock(file, _JAVA):
        if time.monotonic() > until:
            raise OperatorError(
                f"{table}: the Java process of a killed job still holds this table: stop it"
            )
        time.sleep(_POLL_S)
    fcntl.lockf(file, fcntl.LOCK_UN, 1, _JAVA)  # Java takes it as soon as it runs.
    file.seek(0)
    file.truncate()
    file.write(f"{os.getpid()}\n")
    file.flush()


def _check_there(file: IO[str], path: Path, table: Path) -> None:
    """A refused run removes its file when it ends. Another job that had opened it just before would
    hold a lock that a third one does not see."""
    with suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(file.fileno()), path.stat()):
            return
    raise OperatorError(f"{table}: another job ended at this moment: start this one again")


def _try_lock(file: IO[str], byte: int) -> bool:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True  # A file system without locks: Delta's `txn` still lets one job win.
    return True


def hold_in_java(spark: "SparkSession", path: Path) -> object:
    """The Java machine holds its part of the lock until it ends. The caller keeps what this
    returns for as long: without a reference to it, Java would let the lock go."""
    java: Any = spark.sparkContext._jvm
    channel = java.java.io.RandomAccessFile(str(path), "rw").getChannel()
    channel.tryLock(_JAVA, 1, False)
    return channel
