"""Builds the compiled parts of Strandline, those of COMPILED, where there is a compiler.

Why:    an install must work without a compiler. The Python twins return the same results, slower.
How:    hatchling calls this for wheels and for editable installs. setuptools compiles for the
        limited API, so each binary serves all later versions of Python. A failure is a warning,
        and the package is pure Python.
Source: docs/decisions/0044-inside-a-batch.md."""

import sys
import sysconfig
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
        try:
            compile_extension(root)
        except Exception as error:
            self.app.display_warning(f"no compiled part, Python does its work slower: {error}")
            return
        if not all((root / target).exists() for target in targets):
            return  # A platform whose binaries have another name uses the Python twin.
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["artifacts"].extend(targets)
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{platform}"


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


if __name__ == "__main__":
    compile_extension(Path(__file__).resolve().parent)
    sys.exit(0)
