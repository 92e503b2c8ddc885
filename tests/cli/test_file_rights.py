"""Files that a broker writes are closed to other users, whatever the umask of its service.

Source: docs/operating/security.md, "Files"."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.cli.server.file_rights import take_rights_from_others


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.parametrize(("given", "mode"), [(0o000, 0o640), (0o022, 0o640), (0o077, 0o600)])
def test_others_get_no_right_and_the_group_what_the_umask_leaves(
    tmp_path: Path, given: int, mode: int
) -> None:
    os.umask(given)
    take_rights_from_others()
    (tmp_path / "file").touch()
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode
