"""The compiled walk: built where there is a compiler, and safe on hostile input.

Source: decision 0044."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import hatch_build
import pytest
from tests.records.walk_library import build_walk, load_walk

from strandline.records import contents
from strandline.spark.decoding import fill
from strandline.spark.writing import row_encode

ROOT = Path(__file__).resolve().parents[2]
needs_compiler = pytest.mark.skipif(
    shutil.which("cc") is None, reason="there is no compiler (2026-11-29)"
)


class Screen:
    """What hatchling shows."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def display_warning(self, message: str) -> None:
        self.warnings.append(message)


def build(root: Path, screen: Screen) -> dict[str, Any]:
    """Run the hook; what it says of the wheel."""
    data: dict[str, Any] = {"artifacts": [], "pure_python": True, "tag": ""}
    hook = hatch_build.CompiledPart(str(root), {}, None, None, "", "wheel", screen)  # type: ignore[arg-type]
    hook.initialize("standard", data)
    return data


def test_no_byte_is_read_behind_the_records(walk_file: Path) -> None:
    """Inputs end where memory ends: one byte more would be a segmentation fault."""
    command = [sys.executable, "-m", "tests.records.guarded_walk", "1", "4000", str(walk_file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@needs_compiler
@pytest.mark.parametrize("module", hatch_build.COMPILED)
def test_the_source_compiles_without_a_warning(tmp_path: Path, module: str) -> None:
    built = load_walk(build_walk(tmp_path, module))
    assert (
        built.REVISION
        == {"_contents": contents, "_columns": fill, "_rows": row_encode}[built.__name__].REVISION
    )


@needs_compiler
def test_a_wheel_with_a_compiler_has_the_compiled_walk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = [hatch_build.source_of(module) for module in hatch_build.COMPILED]
    for name in (*sources, *hatch_build.HEADERS):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    screen = Screen()
    data = build(tmp_path, screen)
    assert screen.warnings == []
    targets = [hatch_build.target_of(module) for module in hatch_build.COMPILED]
    assert all((tmp_path / target).exists() for target in targets)
    assert data["artifacts"] == targets
    assert data["tag"].startswith("cp311-abi3-")


def test_a_wheel_without_a_compiler_is_pure_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(root: Path) -> None:
        raise OSError("command 'cc' failed: No such file or directory")

    monkeypatch.setattr(hatch_build, "compile_extension", fail)
    stale = tmp_path / hatch_build.target_of(hatch_build.COMPILED[0])
    stale.parent.mkdir(parents=True)
    stale.write_bytes(b"of another revision")
    screen = Screen()
    assert build(tmp_path, screen) == {"artifacts": [], "pure_python": True, "tag": ""}
    assert len(screen.warnings) == 1
    assert not stale.exists()
