"""Tables are named by a local path or by a URI."""

from pathlib import Path

import pytest

from strandline.base.errors import OperatorError
from strandline.pipeline.locations import absolute_location, existing_table


def test_local_tables_are_absolute_and_uris_stay(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute_location("lake") == str(tmp_path / "lake")
    assert absolute_location("file:///lake/a") == "/lake/a"
    assert absolute_location("s3a://bucket/lake") == "s3a://bucket/lake"
    with pytest.raises(OperatorError):
        absolute_location("")


def test_table_to_read_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="is not a Delta table"):
        existing_table(str(tmp_path))
    (tmp_path / "_delta_log").mkdir()
    assert existing_table(str(tmp_path)) == str(tmp_path)
