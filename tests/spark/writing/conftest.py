"""The compiled encoding for the tests of this room: that of the tree, or one built for them.

Source: decision 0054."""

import shutil
from pathlib import Path
from types import ModuleType

import pytest
from tests.records.walk_library import build_walk, load_walk

from strandline.spark.writing.row_encode import IS_COMPILED


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The module of the compiled encoding."""
    if IS_COMPILED:
        from strandline.records import _rows

        return load_walk(Path(_rows.__file__))
    if shutil.which("cc") is None:
        pytest.skip("the compiled encoding is not built, and there is no compiler (2026-11-29)")
    return load_walk(build_walk(tmp_path_factory.mktemp("rows"), "strandline.records._rows"))
