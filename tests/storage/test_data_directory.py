"""A broker's data directory is for its own user; one that others may use is warned of.

Source: docs/operating/security.md, "Files"."""

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.model.ids import BrokerId
from strandline.storage.disk.real_disk import RealDisk
from strandline.storage.identity import DataDirectory


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """Nothing is taken away by the process."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_directory_that_is_made_is_for_the_broker_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "data"
    DataDirectory.acquire(str(path), broker_id=BrokerId(1)).release()
    assert (mode(path), mode(path / "lock")) == (0o700, 0o600)
    assert caplog.messages == []


@pytest.mark.parametrize("given", [0o755, 0o750, 0o701])
def test_one_that_others_may_use_is_taken_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, given: int
) -> None:
    caplog.set_level(logging.WARNING)
    path = tmp_path / "data"
    path.mkdir()
    path.chmod(given)
    DataDirectory.acquire(str(path), broker_id=BrokerId(1)).release()
    assert mode(path) == given
    (line,) = caplog.messages
    assert f"chmod 700 {path}" in line


def test_logs_are_for_the_broker_alone(tmp_path: Path) -> None:
    disk = RealDisk(lambda callback: callback())
    try:
        disk.make_directories(str(tmp_path / "logs"))
        disk.open(str(tmp_path / "logs/one"), create=True).close()
    finally:
        disk.close()
    assert (mode(tmp_path / "logs"), mode(tmp_path / "logs/one")) == (0o700, 0o600)
