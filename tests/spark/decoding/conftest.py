"""The compiled fill for the tests of this room: that of the tree, or one that is built for them.

Source: decision 0056."""

from pathlib import Path
from types import ModuleType

import pytest
from tests.records.walk_library import compiled_file, load_walk

from strandline.spark.decoding.fill import IS_COMPILED


@pytest.fixture(scope="session")
def columns_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the compiled fill is."""
    directory = tmp_path_factory.mktemp("compiled")
    return compiled_file("strandline.records._columns", directory, is_built=IS_COMPILED)


@pytest.fixture(scope="session")
def compiled(columns_file: Path) -> ModuleType:
    """The module of the compiled fill."""
    return load_walk(columns_file)
