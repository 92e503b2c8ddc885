"""The file of the audit log: rotated once, and whole lines only, whatever the disk does."""

import errno
import logging
import os
import stat
import threading
import time
from pathlib import Path

import pytest
from tests.security.audit.test_trail import event, trail

from strandline.base.errors import OperatorError
from strandline.security.audit.audit_file import AuditFile
from strandline.security.audit.audit_log import AuditLog
from strandline.security.audit.event import EventKind

WAIT_S = 60


class RealTime:
    """As much of a clock as the log needs."""

    def monotonic_ms(self) -> int:
        return int(time.monotonic() * 1000)

    def wall_ms(self) -> int:
        return int(time.time() * 1000)


class BadFile(AuditFile):
    """A disk that is full, or hangs, until the test says otherwise."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, bytes_max=1 << 20)
        self.is_full = False
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.tried = threading.Event()

    def write(self, lines: bytes) -> None:
        self.tried.set()
        self.may_go_on.wait(WAIT_S)
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().write(lines)


def test_the_file_is_rotated_once_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    file = AuditFile(path, bytes_max=100)
    for number in range(20):
        file.write(b"%029d\n" % number)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["audit.jsonl", "audit.jsonl.1"]
    old, new = Path(f"{path}.1").read_bytes(), path.read_bytes()
    assert [int(one) for one in (old + new).split()] == list(range(15, 20))
    assert max(len(old), len(new)) <= 100
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_restart_goes_on_behind_half_a_line(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b"one\ntw")
    file = AuditFile(path, bytes_max=1_000)
    file.write(b"three\n")
    assert path.read_bytes() == b"one\ntw\nthree\n"


def test_a_failed_write_leaves_no_half_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "audit.jsonl"
    file = AuditFile(path, bytes_max=1_000)
    file.write(b"one\n")
    write = os.write
    answers = [3, 0]

    def short(fd: int, data: bytes) -> int:
        count = answers.pop(0)
        if not count:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, bytes(data)[:count])

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", short)
        with pytest.raises(OSError, match="No space"):
            file.write(b"twotwo\n")
    assert path.read_bytes() == b"one\n"
    file.write(b"three\n")
    assert path.read_bytes() == b"one\nthree\n"


def test_a_file_that_another_program_renamed_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    file = AuditFile(path, bytes_max=1_000)
    file.write(b"one\n")
    path.rename(tmp_path / "kept")
    file.write(b"two\n")
    assert path.read_bytes() == b"two\n"


def test_a_path_that_cannot_be_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"\[access\] audit_file: cannot open .*create its"):
        AuditFile(tmp_path / "absent" / "audit.jsonl", bytes_max=100).check()
    with pytest.raises(OperatorError, match="must be a plain file"):
        AuditFile(tmp_path, bytes_max=100).check()


def test_a_full_disk_costs_no_line_that_the_queue_holds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "strandline.security")
    file = BadFile(tmp_path / "audit.jsonl")
    file.is_full = True
    log = AuditLog(trail(), file, RealTime())  # type: ignore[arg-type]
    log.start()
    log.add(event(name="first"))
    assert file.tried.wait(WAIT_S)
    log.add(event(name="second"))
    file.is_full = False
    deadline_s = time.monotonic() + WAIT_S
    while not (file.path.exists() and b"second" in file.path.read_bytes()):
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
    log.stop()
    assert file.path.read_bytes().count(b"\n") == 2
    assert log.write_error_count >= 1 and log.dropped_count == 0
    assert [one.getMessage() for one in caplog.records] == [
        f"cannot write the audit log {file.path}: No space left on device"
    ]


def test_a_disk_that_hangs_holds_up_nothing_and_changes_find_room(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "strandline.security")
    file = BadFile(tmp_path / "audit.jsonl")
    file.may_go_on.clear()
    made = trail(lines=1_000_000, queue_bytes=20_000)
    log = AuditLog(made, file, RealTime())  # type: ignore[arg-type]
    log.start()
    log.add(event(name="first"))
    assert file.tried.wait(WAIT_S)
    for _ in range(1_000):
        log.add(event())
    log.add(event(EventKind.CHANGE, name="a change"))
    assert log.dropped_count > 0 and made.queue_bytes <= 20_000
    assert len([one for one in caplog.records if "has dropped" in one.getMessage()]) == 1
    file.may_go_on.set()
    log.stop()
    written = file.path.read_text()
    assert "first" in written and "a change" in written and '"event":"dropped"' in written
