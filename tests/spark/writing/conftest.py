"""The compiled encoding for the tests of this room: that of the tree, or one built for them.

Source: decision 0054."""

from types import ModuleType

import pytest
from tests.records.walk_library import compiled_file, load_walk

from strandline.spark.writing.row_encode import IS_COMPILED


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The module of the compiled encoding."""
    directory = tmp_path_factory.mktemp("compiled")
    return load_walk(compiled_file("strandline.records._rows", directory, is_built=IS_COMPILED))
