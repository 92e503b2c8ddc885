"""A file that a page or a docstring names is there, and a test file is short.

Source: STYLE, "Sizes" and rule 10."""

import re
from pathlib import Path

import pytest
from tests.tidy.test_source import FILE_LINES_MAX, ROOT, SOURCES, relative, tracked

NAMED = re.compile(r"(?<![\w./<*-])((?:[\w.-]+/)+[\w.-]+\.(?:py|md|toml|json|txt))\b(?!\()")
"""A path with a folder: `raft/core.py`, `docs/internals/chaos.md`."""
ROOMS = tuple(
    f"src/strandline/{path.parent.name}" for path in SOURCES if path.name == "__init__.py"
)
ROOTS = ("", "src", "src/strandline", "tests", "docs", "docs/internals", "tests/simulation", *ROOMS)
ELSEWHERE = (
    "DATA/",
    "DIR/",
    "_delta_log/",
    "common/message/",
    "reference/",
    "model/quorum_model.py",
)
"""Files of a broker, of a table, of other projects, and collections outside the repository."""
EXAMPLES = ("docs/internals/style.md",)
"""Pages that name files as examples."""
PAGES = sorted(path for path in tracked("*.md") if relative(path) not in EXAMPLES)


def is_there(name: str, page: Path) -> bool:
    """Whether a path that a page names exists, seen from the page or from one of ROOTS."""
    places = [page.parent, *(ROOT / root for root in ROOTS), *page.parents]
    return any((place / name).exists() for place in places)


@pytest.mark.parametrize("path", PAGES, ids=relative)
def test_a_page_names_no_file_that_is_not_there(path: Path) -> None:
    names = set(NAMED.findall(path.read_text()))
    missing = [name for name in sorted(names) if not is_there(name, path)]
    assert [name for name in missing if not name.startswith(ELSEWHERE)] == []


def test_no_source_file_names_a_file_that_is_not_there() -> None:
    missing = [
        f"{relative(path)}: {name}"
        for path in SOURCES
        for name in sorted(set(NAMED.findall(path.read_text())))
        if not is_there(name, path) and not name.startswith(ELSEWHERE)
    ]
    assert missing == []


def test_a_test_file_is_short() -> None:
    long = {
        relative(path): lines
        for path in tracked("tests/*.py", "bench/*.py", "chaos/*.py", "demo/*.py")
        if (lines := path.read_text().count("\n")) > FILE_LINES_MAX
    }
    assert long == {}
