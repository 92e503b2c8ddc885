"""Prints results: aligned tables for people, JSON for programs.

Why:    one place, so that every command has `--json` and the same look.
How:    a result is a JSON value and a function that prints text instead. rich is imported only to
        draw a table. Output that is not a terminal has no colour and no wrapping, for grep.
            Names come from clients: what would steer a terminal is shown as an escape.
Source: reference ecosystem 5."""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from strandline.base.json_value import Json
from strandline.base.printable import printable, printable_json

NAME = "strandline"
WIDE_COLUMNS = 10_000


@dataclass(slots=True)
class Table:
    """Rows under upper-case heads; `right` names the heads of columns of numbers."""

    heads: Sequence[str]
    rows: Iterable[Sequence[str | int]]
    right: frozenset[str] = field(default_factory=frozenset)
    title: str = ""


def show(value: Json, *, as_json: bool, people: Callable[[], None]) -> None:
    """Print a result: `value` if `as_json`, else call `people`, which prints text."""
    if as_json:
        print_json(value)
    else:
        people()


def print_json(value: Json) -> None:
    """Print one JSON value."""
    sys.stdout.write(printable_json(json.dumps(value, indent=2, ensure_ascii=False)) + "\n")


def counted(number: int, noun: str) -> str:
    """`1 copy`, `2 copies`."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def print_line(text: str) -> None:
    """Print a line for people."""
    sys.stdout.write(printable(text) + "\n")


def print_table(table: Table) -> None:
    """Draw a table."""
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    is_terminal = sys.stdout.isatty()
    drawn = RichTable(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for head in table.heads:
        drawn.add_column(
            head,
            justify="right" if head in table.right else "left",
            no_wrap=not is_terminal,
            overflow="fold",
        )
    for row in table.rows:
        # Plain text: a bracket in a name is no markup.
        drawn.add_row(*(Text(printable(str(cell))) for cell in row))
    console = Console(file=sys.stdout, highlight=False, width=None if is_terminal else WIDE_COLUMNS)
    if table.title:
        print_line(table.title)
    with console.capture() as captured:
        console.print(drawn)
    for line in captured.get().split("\n")[:-1]:
        sys.stdout.write(line.rstrip() + "\n")


def print_more(hidden: int) -> None:
    """Say how many rows a table leaves out, if any."""
    if hidden > 0:
        print_line(f"and {hidden} more like these; --json shows all")


def print_error(text: str, reasons: Iterable[str] = ()) -> None:
    """One line on standard error, and one more for each of the reasons."""
    sys.stderr.write(f"error: {printable(' '.join(text.split()))}\n")
    for one in reasons:
        sys.stderr.write(f"  {printable(' '.join(one.split()))}\n")


def program() -> str:
    """What the user types to run this program: its name where that finds it, else its path."""
    import shlex
    import shutil

    path = Path(sys.argv[0])
    found = shutil.which(NAME)
    if found is not None and path.exists() and path.samefile(found):
        return NAME
    if path.name == NAME:
        return shlex.quote(sys.argv[0])
    return f"{shlex.quote(sys.executable)} -m strandline.cli.main"


def ids(numbers: Iterable[int]) -> str:
    """Broker ids for people: `1,2,3`, or `-` for none."""
    return ",".join(str(number) for number in numbers) or "-"
