"""The table of clients and cells, for people and for docs/reference/clients.md."""

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from clients.client import CELLS, Client
from clients.records import CellError

OK = "ok"
LINE_MAX = 200


@dataclass(frozen=True, slots=True)
class Row:
    """A client and {cell: `ok`, `FAIL` with its reason, or why it was not tried}."""

    client: Client
    answers: dict[str, str]

    @property
    def is_red(self) -> bool:
        """A cell failed."""
        return any(answer.startswith("FAIL") for answer in self.answers.values())


def answer(check: Callable[[], None]) -> str:
    """`ok`, or `FAIL` with the reason."""
    try:
        check()
    except CellError as error:
        return f"FAIL: {error}"
    except Exception as error:
        return f"FAIL: {type(error).__name__} {str(error).splitlines()[:1]}"[:LINE_MAX]
    return OK


def why_not_here(client: Client) -> str:
    """Fetch and build what a client needs; why it cannot run here, empty if it can."""
    if lacking := client.lacks():
        return f"not here: {lacking}"
    try:
        if client.prepare:
            client.prepare()
    except subprocess.CalledProcessError as error:
        lines = (error.stderr or error.stdout or "").strip().splitlines() or ["no word"]
        command = " ".join(map(str, error.cmd[:2]))
        return f"not here: `{command}`: {lines[-1]}"[:LINE_MAX]
    return ""


def slug(name: str) -> str:
    """A client's name as a part of a topic's."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def say(text: str) -> None:
    """Tell how far it is."""
    sys.stderr.write(text)
    sys.stderr.flush()


def as_text(rows: Sequence[Row], cells: Sequence[str] = CELLS) -> str:
    """For a terminal; reasons stand below the table."""
    lines = [f"{'client':<24}{'version':<12}" + "".join(f"{cell:<13}" for cell in cells)]
    notes: list[str] = []
    for row in rows:
        shown = "".join(f"{row.answers[cell].split(':')[0]:<13}" for cell in cells)
        lines.append(f"{row.client.name:<24}{row.client.version:<12}{shown}".rstrip())
        notes += _notes(row)
    return "\n".join([*lines, *notes]) + "\n"


def _notes(row: Row) -> list[str]:
    said = {cell: answer for cell, answer in row.answers.items() if ":" in answer}
    if len(set(said.values())) == 1 and len(said) == len(row.answers):
        return [f"{row.client.name}: {next(iter(said.values()))}"]
    return [f"{row.client.name}, {cell}: {answer}" for cell, answer in said.items()]


def as_markdown(rows: Sequence[Row], cells: Sequence[str] = CELLS) -> str:
    """For the page."""
    head = ["client", "version", *cells, "what was tried"]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for row in rows:
        shown = [row.answers[cell].replace("|", "/") for cell in cells]
        columns = [row.client.name, row.client.version, *shown, row.client.tried]
        lines.append(f"| {' | '.join(columns)} |")
    return "\n".join(lines) + "\n"
