"""What upkeep removes from a table's log: only what belongs to nothing."""

import os
from pathlib import Path

from strandline.pipeline.upkeep.litter import log_litter, remove_litter
from strandline.pipeline.upkeep.options import DAY_MS

COMMIT = f"{7:020d}.json"


def test_only_old_files_that_belong_to_nothing_go(tmp_path: Path) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    kept = [COMMIT, f".{COMMIT}.crc", "_last_checkpoint", f"{7:020d}.crc"]
    orphans = [f".{COMMIT}.1b4e.tmp", f"..{COMMIT}.1b4e.tmp.crc", f".{6:020d}.json.crc"]
    for name in (*kept, *orphans):
        (log / name).write_text("")
        os.utime(log / name, (1_000, 1_000))
    young_ms = 1_000_000 + DAY_MS - 1
    assert log_litter(tmp_path, now_ms=young_ms) == []
    assert [path.name for path in log_litter(tmp_path, now_ms=young_ms + 1)] == sorted(orphans)
    assert remove_litter(tmp_path) == len(orphans)
    assert sorted(path.name for path in log.iterdir()) == sorted(kept)
    assert remove_litter(tmp_path / "none") == 0
