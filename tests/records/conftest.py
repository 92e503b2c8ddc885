"""The compiled walk for the tests of this room: that of the tree, or one that is built for them.

Why:    a tree without it (`make setup` without a compiler, a fresh clone) would test nothing of it.
Source: decision 0044."""

from pathlib import Path
from types import ModuleType

import pytest
from tests.records.walk_library import compiled_file, load_walk

from strandline.records.contents import IS_COMPILED


@pytest.fixture(scope="session")
def walk_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the compiled walk is."""
    directory = tmp_path_factory.mktemp("compiled")
    return compiled_file("strandline.records._contents", directory, is_built=IS_COMPILED)


@pytest.fixture(scope="session")
def compiled(walk_file: Path) -> ModuleType:
    """The module of the compiled walk."""
    return load_walk(walk_file)
