"""Each broker's process, and signals to it.

Why:    a pid alone is not enough: after a reboot or a crash the number may belong to another
        process, and a SIGKILL to the wrong process cannot be undone.
How:    a broker's pid file carries the moment its process started, in the kernel's own ticks since
        boot, and the id of the boot. A signal is sent only while /proc says the same.
            ABSENT --spawned--> RUNNING --pause--> PAUSED --resume--> RUNNING;  any --kill--> ABSENT
Owns:   the pid files.
Source: proc(5), field 22 of /proc/PID/stat."""

import json
import os
import signal
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path

from strandline.base.errors import OperatorError

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_POLL_MS = 10


class ProcessState(Enum):
    """What a broker's process does."""

    ABSENT = "down"
    RUNNING = "running"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class ProcessMark:
    """One process, for ever: its pid, when it started (ticks since boot), and which boot that
    was."""

    pid: int
    started_ticks: int
    boot_id: str

    @classmethod
    def of(cls, pid: int) -> "ProcessMark | None":
        """The mark of a process that lives now; None when there is none (or only its corpse)."""
        stat = _read_stat(pid)
        return None if stat is None else cls(pid, stat[1], _boot_id())

    def state(self) -> ProcessState:
        """What this very process does now."""
        stat = _read_stat(self.pid)
        if stat is None or stat[1] != self.started_ticks or self.boot_id != _boot_id():
            return ProcessState.ABSENT
        return ProcessState.PAUSED if stat[0] in "Tt" else ProcessState.RUNNING

    def send(self, number: signal.Signals) -> bool:
        """Signal this very process; False when it is gone."""
        # The descriptor pins the process: what is checked and what is signalled are the same one.
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        try:
            if self.state() is ProcessState.ABSENT:
                return False
            signal.pidfd_send_signal(descriptor, number)
        except ProcessLookupError:
            return False
        except PermissionError as error:
            raise OperatorError(f"process {self.pid} belongs to another user") from error
        finally:
            os.close(descriptor)
        return True


def write_mark(path: Path, mark: ProcessMark) -> None:
    """Note which process a broker is, at once or not at all."""
    scratch = path.with_name(path.name + ".new")
    scratch.write_text(json.dumps(asdict(mark)) + "\n")
    os.replace(scratch, path)


def read_mark(path: Path) -> ProcessMark | None:
    """The process of a broker; None if no file names one."""
    try:
        body = json.loads(path.read_text())
        return ProcessMark(int(body["pid"]), int(body["started_ticks"]), str(body["boot_id"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def live_mark(path: Path) -> ProcessMark | None:
    """The process that a pid file names, if it still lives."""
    mark = read_mark(path)
    return mark if mark is not None and mark.state() is not ProcessState.ABSENT else None


def stop_processes(marks: Iterable[ProcessMark], *, grace_ms: int) -> list[ProcessMark]:
    """Ask all to end, kill those that have not after `grace_ms`; returns the ones that were
    killed."""
    marks = list(marks)
    for mark in marks:
        if mark.state() is ProcessState.PAUSED:
            mark.send(signal.SIGCONT)
        mark.send(signal.SIGTERM)
    left = wait_gone(marks, timeout_ms=grace_ms)
    kill_processes(left)
    return left


def kill_processes(marks: Iterable[ProcessMark]) -> None:
    """SIGKILL, and wait until they are gone."""
    marks = [mark for mark in marks if mark.send(signal.SIGKILL)]
    stuck = wait_gone(marks, timeout_ms=10_000)
    if stuck:
        raise OperatorError(f"process {stuck[0].pid} hangs in the kernel: SIGKILL has no effect")


def wait_gone(marks: Iterable[ProcessMark], *, timeout_ms: int) -> list[ProcessMark]:
    """Wait until these processes are gone; returns the ones that are not."""
    until = time.monotonic() + timeout_ms / 1000
    left = list(marks)
    while True:
        left = [mark for mark in left if mark.state() is not ProcessState.ABSENT]
        if not left or time.monotonic() >= until:
            return left
        time.sleep(_POLL_MS / 1000)


def _read_stat(pid: int) -> tuple[str, int] | None:
    """State letter and start of a process; None when it is gone or a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command's name comes second, in parentheses, and may hold anything but the last ")".
    fields = text[text.rindex(")") + 2 :].split()
    return None if fields[0] in ("Z", "X") else (fields[0], int(fields[19]))


def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError as error:
        raise OperatorError("local clusters need Linux: there is no /proc") from error
