"""Builds a compiled part beside the tree, and loads one from its file.

Source: decision 0044."""

import importlib.machinery
import importlib.util
import shutil
import subprocess
import sysconfig
from pathlib import Path
from types import ModuleType

import hatch_build
import pytest

ROOT = Path(__file__).resolve().parents[2]


def build_walk(directory: Path, module: str = "strandline.records._contents") -> Path:
    """Compile a module of `hatch_build.COMPILED`, the walk, into `directory`; a warning is a
    failure. Returns its file."""
    target = directory / Path(hatch_build.target_of(module)).name
    command = ["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror"]
    command += [f"-I{sysconfig.get_paths()['include']}", str(ROOT / hatch_build.source_of(module))]
    done = subprocess.run([*command, "-o", str(target)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target


def load_walk(file: Path) -> ModuleType:
    """The module in this file, whether the tree has one or not."""
    name = file.name.partition(".")[0]
    loader = importlib.machinery.ExtensionFileLoader(name, str(file))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def compiled_file(module: str, directory: Path, *, is_built: bool) -> Path:
    """The file of a module of `hatch_build.COMPILED`: that of the tree, where it is of the sources'
    revision, or one that is built into `directory`. Without either, the test is skipped."""
    if is_built:
        found = importlib.util.find_spec(module)
        assert found is not None and found.origin is not None
        return Path(found.origin)
    if shutil.which("cc") is None:
        pytest.skip(f"{module} is not built, and there is no compiler (2026-11-29)")
    return build_walk(directory, module)
