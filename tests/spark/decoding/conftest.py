"""The compiled fill for the tests of this room: that of the tree, or one that is built for them.

Source: decision 0056."""

import shutil
from pathlib import Path
from types import ModuleType

import pytest
from tests.records.walk_library import build_walk, load_walk

from strandline.spark.decoding.fill import IS_COMPILED


@pytest.fixture(scope="session")
def columns_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the compiled fill is."""
    if IS_COMPILED:
        from strandline.records import _columns

        return Path(_columns.__file__)
    if shutil.which("cc") is None:
        pytest.skip("the compiled fill is not built, and there is no compiler (2026-11-29)")
    return build_walk(tmp_path_factory.mktemp("fill"), "strandline.records._columns")


@pytest.fixture(scope="session")
def compiled(columns_file: Path) -> ModuleType:
    """The module of the compiled fill."""
    return load_walk(columns_file)
