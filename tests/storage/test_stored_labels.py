"""The broker's labels in its data directory.

Source: docs/decisions/0015-labels-at-run-time.md."""

import json
from pathlib import Path

import pytest

from strandline.model.cluster import Labels, StoredLabels
from strandline.storage.stored_labels import FILE, read_labels, write_labels

KEPT = StoredLabels(
    Labels(region="west", free=(("disk", "ssd"),)), Labels(region="east", rack="r1")
)


def test_what_was_kept_last_is_read(tmp_path: Path) -> None:
    assert read_labels(str(tmp_path)) is None
    write_labels(str(tmp_path), StoredLabels(Labels("south"), Labels()))
    write_labels(str(tmp_path), KEPT)
    assert read_labels(str(tmp_path)) == KEPT
    assert json.loads((tmp_path / FILE).read_text()) == {
        "labels": {"region": "west", "disk": "ssd"},
        "configured": {"region": "east", "rack": "r1"},
    }
    assert [one.name for one in tmp_path.iterdir()] == [FILE]


@pytest.mark.parametrize("text", ["", "{", '{"labels": 1}', '{"labels": {"region": 1}}'])
def test_what_cannot_be_read_is_as_not_there_and_said(
    text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / FILE).write_text(text)
    assert read_labels(str(tmp_path)) is None
    assert "those of the controller" in caplog.text
