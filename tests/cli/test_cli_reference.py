"""The page of the command line is what the app says (STYLE, rule 10)."""

from pathlib import Path

import pytest
import typer

from strandline.cli.exit_codes import EXIT_CODES
from strandline.cli.main import app
from strandline.cli.reference import render_cli_page

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"


def test_the_written_page_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STRANDLINE_DEV_DIR", raising=False)
    assert PAGE.read_text() == render_cli_page(typer.main.get_command(app)), (
        "docs/reference/cli.md is old: strandline config reference --write docs/reference"
    )


def test_every_command_of_a_first_day_is_there() -> None:
    page = render_cli_page(typer.main.get_command(app))
    for command in (
        "serve",
        "dev start",
        "dev stop",
        "dev status",
        "dev broker kill",
        "dev broker start",
        "dev broker pause",
        "dev broker resume",
        "dev broker add",
        "dev broker remove",
        "dev region kill",
        "dev region start",
        "topic create",
        "topic list",
        "topic describe",
        "topic delete",
        "topic delete-records",
        "partition move",
        "partition moves",
        "partition cancel",
        "produce",
        "consume",
        "group list",
        "group describe",
        "log inspect",
        "log verify",
        "config check",
        "config reference",
        "pipeline lake",
        "version",
    ):
        assert f"# strandline {command}\n" in page, command
    assert all(f"| {code} |" in page for code in EXIT_CODES)
