"""The compiled walk for the tests of this room: that of the tree, or one that is built for them.

Why:    a tree without it (`make setup` without a compiler, a fresh clone) would test nothing of it.
Source: decision 0044."""

import shutil
from pathlib import Path
from types import ModuleType

import pytest
from tests.records.walk_library import build_walk, load_walk

from strandline.records.contents import IS_COMPILED


@pytest.fixture(scope="session")
def walk_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the compiled walk is."""
    if IS_COMPILED:
        from strandline.records import _contents

        return Path(_contents.__file__)
    if shutil.which("cc") is None:
        pytest.skip("the compiled walk is not built, and there is no compiler (2026-11-29)")
    return build_walk(tmp_path_factory.mktemp("walk"))


@pytest.fixture(scope="session")
def compiled(walk_file: Path) -> ModuleType:
    """The module of the compiled walk."""
    return load_walk(walk_file)
