"""Finds the logs of a stopped broker, and keeps it stopped while a command reads them.

How:    DIR is a broker's data directory (`logs` is in it) or the directory of one log. A shared
        lock of the data directory keeps a broker from starting meanwhile.
Source: docs/ARCHITECTURE.md, "What is where on disk"."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass

from strandline.base.errors import OperatorError
from strandline.model.ids import GroupId
from strandline.storage.disk.read_only_disk import ReadOnlyDisk
from strandline.storage.identity import held_offline
from strandline.storage.recovery.survey import is_log

_LOGS = "logs"
_JOURNAL = "state.journal"


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """One log's directory, `TOPIC-PARTITION.GROUP`; `group` is -1 where the name has none."""

    path: str
    name: str
    group: GroupId


@dataclass(frozen=True, slots=True)
class StoppedBroker:
    """A stopped broker. `journal` is None for a copy of a single log."""

    disk: ReadOnlyDisk
    journal: str | None
    logs: list[LogDirectory]


@contextlib.contextmanager
def open_stopped(path: str) -> Iterator[StoppedBroker]:
    """The logs under `path`, while the lock is held. Raises OperatorError.

    An OSError inside the block becomes an OperatorError too."""
    disk = ReadOnlyDisk()
    path = os.path.abspath(path)
    try:
        data, logs = _find(disk, path)
        with held_offline(data):
            journal = f"{data}/{_JOURNAL}"
            yield StoppedBroker(disk, journal if disk.exists(journal) else None, logs)
    except OSError as error:
        reason = error.strerror or error
        raise OperatorError(f"{error.filename or path}: cannot read: {reason}") from error


def _find(disk: ReadOnlyDisk, path: str) -> tuple[str, list[LogDirectory]]:
    """(the data directory, the logs meant)."""
    root = f"{path}/{_LOGS}"
    if os.path.isdir(root):
        names = [name for name in disk.list_directory(root) if os.path.isdir(f"{root}/{name}")]
        return path, [_log_directory(f"{root}/{name}") for name in names]
    if is_log(disk, path):
        return os.path.dirname(os.path.dirname(path)), [_log_directory(path)]
    raise OperatorError(f"{path} is neither a broker's data directory nor a log's directory")


def _log_directory(path: str) -> LogDirectory:
    name, _, group = os.path.basename(path).rpartition(".")
    return LogDirectory(path, name or group, GroupId(int(group) if group.isdigit() else -1))
