"""What clients need is fetched once, whichever processes ask for it."""

import multiprocessing
from pathlib import Path

import pytest

from clients import toolbox

STEP = ("sh", "-c", "sleep 0.2; echo fetched >> {out}/fetches")


def fetch(build: Path, programs: Path) -> None:
    """One process of many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toolbox, "BUILD", build)
        patch.setattr(toolbox, "PROGRAMS", programs)
        toolbox.built("some", [STEP])


def test_processes_that_need_a_folder_at_once_fetch_it_once(tmp_path: Path) -> None:
    build, programs = tmp_path / "build", tmp_path / "programs"
    (programs / "some").mkdir(parents=True)
    spawning = multiprocessing.get_context("spawn")
    processes = [spawning.Process(target=fetch, args=(build, programs)) for _ in range(3)]
    for one in processes:
        one.start()
    for one in processes:
        one.join()
    assert [one.exitcode for one in processes] == [0, 0, 0]
    assert (build / "some" / "fetches").read_text() == "fetched\n"


def test_a_fetch_that_fails_does_not_leave_a_folder_that_looks_complete(tmp_path: Path) -> None:
    build, programs = tmp_path / "build", tmp_path / "programs"
    (programs / "some").mkdir(parents=True)
    fetch(build, programs)
    (programs / "some" / "lock").write_text("other versions")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toolbox, "BUILD", build)
        patch.setattr(toolbox, "PROGRAMS", programs)
        with pytest.raises(OSError, match="no-such-tool"):
            toolbox.built("some", [("no-such-tool",)])
    assert not (build / "some" / ".complete").exists()
