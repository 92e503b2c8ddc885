"""What clients need, fetched at first use into `.build/clients`.

How:    versions and hashes are pinned in what each tool reads: package-lock.json, go.sum,
        pom.xml, Cargo.toml (crates by version). A folder that was built from the same
        files is used again."""

import subprocess
from collections.abc import Sequence
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
    digest = _digest(source, steps)
    stamp = out / ".complete"
    if stamp.exists() and stamp.read_text() == digest:
        return out
    out.mkdir(parents=True, exist_ok=True)
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
    return out


def _files(source: Path) -> list[Path]:
    return sorted(path for path in source.rglob("*") if path.is_file())


def _digest(source: Path, steps: Sequence[Sequence[str]]) -> str:
    digest = sha256(repr(steps).encode())
    for path in _files(source):
        digest.update(str(path.relative_to(source)).encode() + path.read_bytes())
    return digest.hexdigest()
