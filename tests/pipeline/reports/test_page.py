"""A report is one HTML file that loads nothing, and escapes what users named."""

import re
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path

import pytest

from strandline.base.errors import OperatorError
from strandline.pipeline.reports.page import (
    Figure,
    Section,
    Table,
    check_writable,
    render_page,
    write_page,
)

SECTION = Section(
    "Results <b>",
    ["One & two."],
    [Table(["policy", "count", "share"], [["<i>x</i>", 12_345, 0.123456]], "caption")],
    [Figure(b"\x89PNG", "a figure")],
)


def test_text_of_users_is_escaped_and_numbers_are_formatted() -> None:
    page = render_page("A <title>", [SECTION], summary="sum", verdict="yes")
    assert "A &lt;title&gt;" in page and "Results &lt;b&gt;" in page
    assert "&lt;i&gt;x&lt;/i&gt;" in page and "One &amp; two." in page
    assert '<td class="number">12,345</td>' in page and '<td class="number">0.1235</td>' in page


def test_the_page_loads_nothing_and_holds_its_figures() -> None:
    page = render_page("t", [SECTION])
    found: list[tuple[str, str | None]] = []

    class Links(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.extend(one for one in attrs if one[0] in ("src", "href"))

    Links().feed(page)
    assert [name for name, _ in found] == ["src"]
    (data,) = re.findall(r'src="data:image/png;base64,([^"]*)"', page)
    assert b64decode(data) == b"\x89PNG"
    assert "@import" not in page and "url(" not in page


def test_a_report_is_written_whole_or_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    check_writable(file)
    write_page(file, "page")
    assert file.read_text() == "page" and [one.name for one in tmp_path.iterdir()] == [file.name]
    for wrong in (tmp_path, tmp_path / "missing" / "report.html"):
        with pytest.raises(OperatorError, match="cannot write the report"):
            check_writable(wrong)
        with pytest.raises(OperatorError, match="cannot write the report"):
            write_page(wrong, "page")
