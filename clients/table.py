"""The table of clients and cells, for people and for docs/reference/clients.md."""

from collections.abc import Sequence
from dataclasses import dataclass

from clients.client import CELLS, Client

OK = "ok"


@dataclass(frozen=True, slots=True)
class Row:
    """A client and {cell: `ok`, `FAIL` with its reason, or why it was not tried}."""

    client: Client
    answers: dict[str, str]

    @property
    def is_red(self) -> bool:
        """A cell failed."""
        return any(answer.startswith("FAIL") for answer in self.answers.values())


def as_text(rows: Sequence[Row]) -> str:
    """For a terminal; reasons stand below the table."""
    lines = [f"{'client':<24}{'version':<12}" + "".join(f"{cell:<10}" for cell in CELLS)]
    notes: list[str] = []
    for row in rows:
        cells = "".join(f"{row.answers[cell].split(':')[0]:<10}" for cell in CELLS)
        lines.append(f"{row.client.name:<24}{row.client.version:<12}{cells}".rstrip())
        notes += _notes(row)
    return "\n".join([*lines, *notes]) + "\n"


def _notes(row: Row) -> list[str]:
    said = {cell: answer for cell, answer in row.answers.items() if ":" in answer}
    if len(set(said.values())) == 1 and len(said) == len(CELLS):
        return [f"{row.client.name}: {next(iter(said.values()))}"]
    return [f"{row.client.name}, {cell}: {answer}" for cell, answer in said.items()]


def as_markdown(rows: Sequence[Row]) -> str:
    """For the page."""
    head = ["client", "version", *CELLS, "what was tried"]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for row in rows:
        cells = [row.answers[cell].replace("|", "/") for cell in CELLS]
        columns = [row.client.name, row.client.version, *cells, row.client.tried]
        lines.append(f"| {' | '.join(columns)} |")
    return "\n".join(lines) + "\n"
