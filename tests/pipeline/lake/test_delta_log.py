"""What a commit of a table tells, whatever its records hold.

Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md, per-file statistics."""

import json
from pathlib import Path

import pytest

from strandline.pipeline.lake.delta_log import LocalLog, read_commit


@pytest.mark.parametrize(
    ("time", "newest_ms"),
    [
        ("1970-01-01T00:00:01.500Z", 1_500),
        ("+57882-12-21T09:23:20.000Z", None),
        ("-0044-03-15T00:00:00.000Z", None),
    ],
)
def test_a_commit_is_read_whatever_time_its_records_have(
    tmp_path: Path, time: str, newest_ms: int | None
) -> None:
    stats = json.dumps({"numRecords": 3, "maxValues": {"timestamp": time}})
    log = tmp_path / "_delta_log"
    log.mkdir()
    (log / f"{0:020d}.json").write_text(json.dumps({"add": {"path": "a.parquet", "stats": stats}}))
    commit = read_commit(LocalLog(tmp_path), 0)
    assert (commit.rows, commit.newest_ms) == (3, newest_ms)
