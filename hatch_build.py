"""Builds the compiled parts of Strandline: C where there is a compiler, Python if it is asked to.

Why:    an install must work without a compiler. The Python twins return the same results, slower.
How:    hatchling calls this for wheels and for editable installs. C: setuptools compiles COMPILED
        for the limited API, so each binary serves all later versions of Python. A failure is a
        warning, and the package is pure Python. Python: with STRANDLINE_MYPYC=1, mypyc compiles the
        modules of `compiled_modules.txt` for this version of Python into a wheel; the sources
        stay as they are, and a failure ends the build.
Source: docs/decisions/0044-inside-a-batch.md, 0075-compiled-modules.md."""

import os
import sys
import sysconfig
from contextlib import chdir
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPILED = (
    "strandline.records._contents",
    "strandline.records._columns",
    "strandline.records._rows",
)
"""The modules. The source of each lies where the module does, its binary beside it."""
HEADERS = ("src/strandline/records/_module.h", "src/strandline/records/_varints.h")
SWITCH = "STRANDLINE_MYPYC"
LIST = "compiled_modules.txt"
"""Modules of the package, a line each: `raft/core.py`; `raft/leader/*.py` is all of a room."""


def source_of(module: str) -> str:
    """`src/strandline/records/_contents.c`."""
    return f"src/{module.replace('.', '/')}.c"


def target_of(module: str) -> str:
    """`src/strandline/records/_contents.abi3.so`."""
    return f"src/{module.replace('.', '/')}.abi3.so"


class CompiledPart(BuildHookInterface):
    """See the module."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile into the source tree, and have the wheel contain the result."""
        root = Path(self.root)
        targets = [target_of(module) for module in COMPILED]
        for target in targets:
            (root / target).unlink(missing_ok=True)
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        try:
            compile_extension(root)
        except Exception as error:
            self.app.display_warning(f"no compiled part, Python does its work slower: {error}")
        # A platform whose binaries have another name uses the Python twin.
        if all((root / target).exists() for target in targets):
            build_data["artifacts"].extend(targets)
            build_data["pure_python"] = False
            build_data["tag"] = f"cp311-abi3-{platform}"
        if os.environ.get(SWITCH) == "1" and version != "editable":
            for binary, place in compile_modules(root).items():
                build_data["force_include"][str(binary)] = place
            python = f"cp{sys.version_info.major}{sys.version_info.minor}"
            build_data["pure_python"] = False
            build_data["tag"] = f"{python}-{python}-{platform}"


def compile_extension(root: Path) -> None:
    """Compile each of COMPILED, all below `root`. Raises what the compiler's driver raises."""
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    extensions = [
        Extension(module, [source_of(module)], depends=[*HEADERS], py_limited_api=True)
        for module in COMPILED
    ]
    distribution = Distribution(
        {"ext_modules": extensions, "package_dir": {"": "src"}, "script_args": ["build_ext"]}
    )
    command = build_ext(distribution)
    command.inplace = True
    command.force = True
    command.build_temp = command.build_lib = str(root / ".build" / "compiled")
    command.ensure_finalized()
    command.run()


def modules_to_compile(root: Path) -> list[str]:
    """The files that LIST names, below `root`: `src/strandline/raft/core.py`. Raises ValueError if
    a line of it names none."""
    found: dict[str, None] = {}
    package = root / "src" / "strandline"
    for line in (root / LIST).read_text().split():
        files = sorted(one for one in package.glob(line) if one.name != "__init__.py")
        if not files:
            raise ValueError(f"{LIST}: no module is named {line}")
        found.update(dict.fromkeys(str(one.relative_to(root)) for one in files))
    return list(found)


def compile_modules(root: Path) -> dict[Path, str]:
    """Compile the modules of LIST: {binary: its place in the wheel}. Takes minutes. Raises what
    mypyc or the compiler's driver raises; SystemExit where mypyc refuses a module."""
    from mypyc.build import mypycify
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    out = root / ".build" / "mypyc"
    with chdir(root):
        extensions = mypycify(modules_to_compile(root), opt_level="2", target_dir=str(out / "c"))
        command = build_ext(Distribution({"ext_modules": extensions}))
        command.parallel = os.cpu_count()
        command.build_temp, command.build_lib = str(out / "objects"), str(out / "lib")
        command.ensure_finalized()
        command.run()
        binaries = [out / "lib" / command.get_ext_filename(one.name) for one in extensions]
    return {one: str(one.relative_to(out / "lib")) for one in binaries}


if __name__ == "__main__":
    compile_extension(Path(__file__).resolve().parent)
