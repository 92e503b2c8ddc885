"""What clients need, fetched at first use into `.build/clients`.

How:    versions and hashes are pinned in what each tool reads: package-lock.json, go.sum,
        pom.xml, Cargo.toml (crates by version). A folder that was built from the same
        files is used again. One process at a time fetches a folder; the others wait for it."""

import fcntl
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROGRAMS = Path(__file__).parent / "programs"
BUILD = ROOT / ".build" / "clients"
TIMEOUT_S = 900


def built(name: str, steps: Sequence[Sequence[str]], *, copies: bool = False) -> Path:
    """The folder `.build/clients/NAME`; `steps` run in `programs/NAME` unless it is up to date.
    With `copies`, the sources are copied there first and the steps run in the copy. `{out}` in a
    step stands for the folder."""
    source, out = PROGRAMS / name, BUILD / name
    with alone(out):
        _build(source, out, steps, copies=copies)
    return out


@contextmanager
def alone(out: Path) -> Iterator[None]:
    """No other process fetches into this folder meanwhile; one that does is waited for."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with open(out.parent / f"{out.name}.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(source: Path, out: Path, steps: Sequence[Sequence[str]], *, copies: bool) -> None:
    digest = _digest(source, steps)
    stamp = out / ".complete"
    if stamp.exists() and stamp.read_text() == digest:
        return
    out.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    if copies:
        for path in _files(source):
            target = out / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    for step in steps:
        subprocess.run(
            [word.format(out=out) for word in step],
            cwd=out if copies else source,
            check=True,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
    stamp.write_text(digest)


def _files(source: Path) -> list[Path]:
    return sorted(path for path in source.rglob("*") if path.is_file())


def _digest(source: Path, steps: Sequence[Sequence[str]]) -> str:
    digest = sha256(repr(steps).encode())
    for path in _files(source):
        digest.update(str(path.relative_to(source)).encode() + path.read_bytes())
    return digest.hexdigest()
