"""Builds the compiled part of Strandline, `records/_contents.c`, where there is a compiler.

Why:    an install must work without a compiler. The Python twin returns the same results, slower.
How:    hatchling calls this for wheels and for editable installs. setuptools compiles for the
        limited API, so one binary serves all later versions of Python. A failure is a warning, and
        the package is pure Python.
Source: docs/decisions/0044-inside-a-batch.md."""

import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = "src/strandline/records/_contents.c"
TARGET = "src/strandline/records/_contents.abi3.so"


class CompiledPart(BuildHookInterface):
    """See the module."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile into the source tree, and have the wheel contain the result."""
        root = Path(self.root)
        target = root / TARGET
        target.unlink(missing_ok=True)
        try:
            compile_extension(root)
        except Exception as error:
            self.app.display_warning(f"no compiled part, Python does its work slower: {error}")
            return
        if not target.exists():
            return  # A platform whose binaries have another name uses the Python twin.
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["artifacts"].append(TARGET)
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{platform}"


def compile_extension(root: Path) -> None:
    """Compile SOURCE to TARGET, both below `root`. Raises what the compiler's driver raises."""
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    extension = Extension("strandline.records._contents", [SOURCE], py_limited_api=True)
    distribution = Distribution(
        {"ext_modules": [extension], "package_dir": {"": "src"}, "script_args": ["build_ext"]}
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
