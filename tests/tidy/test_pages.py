"""What a page tells people to type is typed by a test.

Source: docs/operating; `tests/integration/pages.py`."""

import ast
from pathlib import Path

import pytest
from tests.tidy.test_source import ROOT, relative

PAGES = ("cores.md", "outages.md")
"""Of docs/operating."""
PAGE_ARGUMENTS = ("page", "heading", "block")
Block = tuple[object, ...]
"""(page, heading of its section, number of the block in it)"""


def blocks(page: str) -> set[Block]:
    """The blocks of commands. One that says what it is (```text) is no command."""
    found: set[Block] = set()
    for section in (ROOT / "docs/operating" / page).read_text().split("\n## ")[1:]:
        heading, _, text = section.partition("\n")
        for number, block in enumerate(text.split("```")[1::2]):
            if block.startswith("\n"):
                lines = block.strip().splitlines()
                assert all(line.startswith("strandline ") for line in lines), (page, heading)
                found.add((page, heading, number))
    return found


def typed(path: Path) -> set[Block]:
    """What a test takes from pages by `commands`: by what stands there, or names of it."""
    tree = ast.parse(path.read_text())
    named: dict[str, set[object]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                keep(named, target, node.value)
    found: set[Block] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "commands" and node.args:
            given = dict(zip(PAGE_ARGUMENTS, node.args, strict=False))
            given |= {one.arg: one.value for one in node.keywords if one.arg}
            pages, headings = (values(given.get(one), named) for one in PAGE_ARGUMENTS[:2])
            numbers = values(given["block"], named) if "block" in given else {0}
            found |= {(a, b, c) for a in pages for b in headings for c in numbers}
    return found


def keep(named: dict[str, set[object]], target: ast.expr, value: ast.expr) -> None:
    """{name: what it is set to anywhere in the file}"""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, other in zip(target.elts, value.elts, strict=False):
            keep(named, one, other)
    elif isinstance(target, ast.Name) and isinstance(value, ast.Constant):
        named.setdefault(target.id, set()).add(value.value)


def values(node: ast.expr | None, named: dict[str, set[object]]) -> set[object]:
    """What may be meant."""
    if isinstance(node, ast.Constant):
        return {node.value}
    return named.get(node.id, set()) if isinstance(node, ast.Name) else set()


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_commands_of_a_page_is_typed_by_a_test(page: str) -> None:
    tests = sorted((ROOT / "tests/integration").glob("test_*.py"))
    found = {block for path in tests for block in typed(path)}
    assert blocks(page) - found == set()


def test_what_tests_type_is_on_the_pages() -> None:
    for path in sorted((ROOT / "tests/integration").glob("test_*.py")):
        for block in sorted(typed(path), key=str):
            if block[0] in PAGES:
                assert block in blocks(str(block[0])), relative(path)


def test_a_block_that_nobody_types_would_be_seen(tmp_path: Path) -> None:
    path = tmp_path / "test_it.py"
    path.write_text(
        'PAGE, TITLE = "a.md", "One"\ncommands(PAGE, TITLE, 1)\ncommands("b.md", "Two")'
    )
    assert typed(path) == {("a.md", "One", 1), ("b.md", "Two", 0)}
    assert len(blocks("outages.md")) > 8
