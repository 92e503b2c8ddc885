"""Each test is in one lane, the long lane is run whole by shares, and no test is left out unsaid.

Source: tests/lanes.py, tests/long.py."""

import ast
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests import lanes
from tests.lanes import LONG, Row, function_of, mark
from tests.long import chunks, order
from tests.tidy.test_source import ROOT

SKIPPING = sorted(
    path for path in (ROOT / "tests").rglob("*.py") if re.search(r"\.skip(if)?\(", path.read_text())
)


class Item:
    """What `mark` looks at of a test."""

    def __init__(self, nodeid: str, **parameters: Any) -> None:
        self.nodeid = nodeid
        self.callspec = SimpleNamespace(params=parameters)
        self.marks: list[str] = []

    def add_marker(self, marker: pytest.MarkDecorator) -> None:
        self.marks.append(marker.name)


def long_ones(*items: Item) -> list[str]:
    """The node ids of those that are marked as long."""
    mark(items)  # type: ignore[arg-type]
    return [item.nodeid for item in items if "long" in item.marks]


def test_of_a_row_the_first_ones_are_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (Row("tests/a.py", 0, "whole"), Row("tests/a.py::test_b", 2, "two of them"))
    monkeypatch.setattr(lanes, "LONG", rows)
    items = [Item(f"tests/a.py::test_b[{one}]") for one in "xyz"]
    assert long_ones(*items, Item("tests/a.py::test_c")) == [
        "tests/a.py::test_b[z]",
        "tests/a.py::test_c",
    ]


def test_the_first_seeds_of_each_course_are_fast_where_seeds_are_dear() -> None:
    dear = [
        Item(f"tests/raft/test_x.py::test_y[{seed}-{way}]", seed=seed, way=way)
        for way in "ab"
        for seed in (5, 6, 7)
    ]
    cheap = [Item(f"tests/storage/test_x.py::test_y[{seed}]", seed=seed) for seed in (5, 6, 7)]
    assert long_ones(*dear, *cheap) == [
        "tests/raft/test_x.py::test_y[7-a]",
        "tests/raft/test_x.py::test_y[7-b]",
    ]


@pytest.mark.parametrize("row", LONG, ids=lambda row: row.prefix)
def test_a_row_names_a_test_and_says_why(row: Row) -> None:
    path, _, function = row.prefix.partition("::")
    place = ROOT / path
    assert place.exists(), path
    assert not function or f"def {function}" in place.read_text()
    assert row.why
    named = re.findall(r"tests/\S+\.py", row.why)
    assert [one for one in named if not (ROOT / one).exists()] == []


def test_the_order_of_a_share_is_another_one_for_each_tree_and_always_the_same() -> None:
    tests = [f"tests/a.py::test_{one}[{two}]" for one in range(20) for two in "xy"]
    assert order(tests, "") == [f"tests/a.py::test_{one}" for one in range(20)]
    assert order(tests, "abc") == order(tests, "abc") != order(tests, "abd")
    assert sorted(order(tests, "abc")) == sorted({function_of(test) for test in tests})


def test_chunks_hold_every_test_once_and_are_about_a_minute_long() -> None:
    tests = [f"tests/a.py::test_{one}[{two}]" for one in range(20) for two in "xy"]
    times = {function_of(test): 30.0 for test in tests}
    parts = list(chunks(tests, times, tree="abc", cores=2))
    assert sorted(test for part in parts for test in part) == sorted(tests)
    assert {len(part) for part in parts} == {4}


def skips(tree: ast.AST) -> list[ast.Call]:
    """The calls of `pytest.skip` and `pytest.mark.skipif`."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [
        one
        for one in calls
        if isinstance(one.func, ast.Attribute) and one.func.attr in ("skip", "skipif")
    ]


@pytest.mark.parametrize("path", SKIPPING, ids=str)
def test_a_test_that_is_left_out_says_why_and_since_when(path: Path) -> None:
    """The date tells whether the reason may be gone."""
    for call in skips(ast.parse(path.read_text())):
        texts = [node.value for node in ast.walk(call) if isinstance(node, ast.Constant)]
        reasons = [text for text in texts if isinstance(text, str)]
        assert any(re.search(r".{10} \(20\d\d-\d\d-\d\d\)$", one) for one in reasons), (
            f"line {call.lineno}: a reason, and a date as in (2026-11-29)"
        )
