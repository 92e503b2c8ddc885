"""What people are told to type exists: each hint of code and pages, by the command tree."""

import pytest
from tests.cli.hints import ROOT, mistake_in, of_code, of_page

CODE = sorted((ROOT / "src").rglob("*.py"))
PAGES = [
    ROOT / "README.md",
    *(
        page
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if page.relative_to(ROOT).as_posix() != "docs/reference/cli.md"  # Generated from the tree.
    ),
]


def test_every_hint_of_the_code_can_be_typed() -> None:
    hints = [(path, hint) for path in CODE for hint in of_code(path)]
    assert len(hints) > 50
    wrong = {f"{path.name}: {hint}": why for path, hint in hints if (why := mistake_in(hint))}
    assert not wrong


def test_every_command_of_the_pages_can_be_typed() -> None:
    hints = [(path, hint) for path in PAGES for hint in of_page(path)]
    assert len(hints) > 100
    wrong = {f"{path.name}: {hint}": why for path, hint in hints if (why := mistake_in(hint))}
    assert not wrong


@pytest.mark.parametrize(
    ("hint", "why"),
    [
        ("replica status orders", "replica status takes 0 arguments, not orders"),
        ("replica stats", "strandline replica has no command 'stats'"),
        ("topic explain orders --pricess x", "topic explain has no option --pricess"),
        ("topic explain orders --prices x -b h:1 # why", ""),
        ("topic list | head", ""),
        ("broker", ""),
    ],
)
def test_a_hint_that_cannot_be_typed_is_found(hint: str, why: str) -> None:
    assert mistake_in(hint) == why
