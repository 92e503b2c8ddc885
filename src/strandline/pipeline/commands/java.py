"""`strandline pipeline java`: the Java runtime that jobs use."""

from typing import Annotated

import typer

from strandline.pipeline.commands.options import JsonOption
from strandline.pipeline.commands.output import write_json, write_line
from strandline.pipeline.runtime.java import find_java, find_or_install_java


def java(
    *,
    install: Annotated[
        bool,
        typer.Option("--install", help="Install Debian's if there is none (needs root)."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Find the Java runtime for the jobs, and print its home."""
    found = find_or_install_java() if install else find_java()
    if as_json:
        write_json({"home": str(found.home), "major": found.major})
        return
    write_line(str(found.home))
