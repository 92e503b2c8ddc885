"""One job at a time writes a table on a local disk, and a refused run leaves nothing."""

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from strandline.base.errors import OperatorError
from strandline.pipeline.lake import lock
from strandline.pipeline.lake.lock import table_lock

HOLDER = """
import sys
from pathlib import Path
from strandline.pipeline.lake.lock import table_lock
with table_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_job_is_told_which_process_has_the_table(tmp_path: Path) -> None:
    table = tmp_path / "lake"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(table)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        told = f"writing this table .process {holder.pid}."
        with pytest.raises(OperatorError, match=told), table_lock(table):
            raise AssertionError("two jobs hold one table")
        holder.kill()  # The kernel frees the lock of a process that is gone.
    with table_lock(table) as path:
        assert path.read_text() == f"{os.getpid()}\n"


def test_a_run_that_writes_no_table_leaves_no_directory(tmp_path: Path) -> None:
    with table_lock(tmp_path / "a" / "b"):
        assert (tmp_path / "a" / "b" / "_strandline" / "lock").exists()
    assert list((tmp_path / "a").glob("*")) == []
    with table_lock(tmp_path / "c"):
        (tmp_path / "c" / "_delta_log").mkdir()
    with table_lock(tmp_path / "c"):
        pass
    assert (tmp_path / "c" / "_delta_log").is_dir()


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    told = f"{tmp_path}/file: cannot write here"
    with pytest.raises(OperatorError, match=told), table_lock(tmp_path / "file"):
        pass


def test_a_lock_on_a_file_that_another_run_removed_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = lock._hold

    def held_after_the_other_ended(file: IO[str], table: Path) -> None:
        hold(file, table)
        (table / "_strandline" / "lock").unlink()

    monkeypatch.setattr(lock, "_hold", held_after_the_other_ended)
    with pytest.raises(OperatorError, match="start this one again"), table_lock(tmp_path / "lake"):
        raise AssertionError("a third job would not see this lock")
