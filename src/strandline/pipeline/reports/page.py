"""A report as one HTML file: text, tables and figures in sections, without any other file.

Why:    a report is mailed and archived; it must open without a network or a server.
How:    jinja2 escapes all text; figures are PNG bytes in `data:` URLs; the page loads nothing.
Source: templates/report.html."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from strandline.base.errors import OperatorError

Cell = str | int | float


@dataclass(frozen=True, slots=True)
class Table:
    """Rows below heads, as many cells each. Numbers are right-aligned, integers with commas."""

    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A PNG file and its caption, which is also the text for readers that see no picture."""

    png: bytes
    caption: str

    @property
    def url(self) -> str:
        """The file itself, as a `data:` URL."""
        return f"data:image/png;base64,{b64encode(self.png).decode('ascii')}"


@dataclass(frozen=True, slots=True)
class Section:
    """A heading; its paragraphs, tables and figures in this order."""

    heading: str
    paragraphs: Sequence[str] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()


def render_page(
    title: str, sections: Sequence[Section], *, summary: str = "", verdict: str = ""
) -> str:
    """The page as text. `summary` stands below the title; `verdict`, one line, in a box."""
    return _template().render(title=title, summary=summary, verdict=verdict, sections=sections)


def write_page(file: Path, page: str) -> None:
    """Write the page, whole or not at all; raises OperatorError."""
    part = file.with_name(f"{file.name}.part")
    try:
        part.write_text(page, encoding="utf-8")
        part.replace(file)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise OperatorError(f"{file}: cannot write the report: {error.strerror}") from error


def check_writable(file: Path) -> None:
    """Refuse a report's path before any work is done; raises OperatorError."""
    if file.is_dir() or not file.parent.is_dir():
        raise OperatorError(
            f"{file}: cannot write the report: name a file in a directory that exists"
        )


def format_cell(cell: Cell) -> str:
    """A cell as text: integers with commas, floats with four significant digits."""
    if isinstance(cell, str):
        return cell
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:,.4g}"


def is_number(cell: Cell) -> bool:
    """Whether a cell is right-aligned."""
    return not isinstance(cell, str)


@lru_cache(maxsize=1)
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("strandline.pipeline.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cell"] = format_cell
    environment.tests["a_number"] = is_number
    return environment.get_template("report.html")
