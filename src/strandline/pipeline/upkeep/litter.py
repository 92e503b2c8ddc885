"""What killed jobs leave in the log of a table on a local disk, and removes it.

Why:    Delta's VACUUM cleans the data, not the log: half-written commits stay there for ever, and
        so do checksum files whose subject is gone.
How:    only files that no reader looks at: hidden ones (`.NAME.tmp`, `.NAME.crc`), once they are a
        day old. Object stores write whole objects and have no such litter."""

import time
from contextlib import suppress
from pathlib import Path

from strandline.pipeline.upkeep.options import DAY_MS


def log_litter(table: Path, *, now_ms: int | None = None) -> list[Path]:
    """Files in the table's log that belong to nothing and are a day old."""
    now_ms = round(time.time() * 1000) if now_ms is None else now_ms
    log = table / "_delta_log"
    if not log.is_dir():
        return []
    names = {path.name for path in log.iterdir()}
    found = []
    for path in log.iterdir():
        if _is_orphan(path.name, names):
            with suppress(FileNotFoundError):
                if now_ms - path.stat().st_mtime * 1000 >= DAY_MS:
                    found.append(path)
    return sorted(found)


def _is_orphan(name: str, names: set[str]) -> bool:
    if not name.startswith("."):
        return False
    if name.endswith(".crc"):
        subject = name[1:].removesuffix(".crc")
        return subject not in names or _is_orphan(subject, names)
    return name.endswith(".tmp")


def remove_litter(table: Path) -> int:
    """Removes it; returns how many files."""
    found = log_litter(table)
    for path in found:
        path.unlink(missing_ok=True)
    return len(found)
