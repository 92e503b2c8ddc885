"""Measures how long each test takes, and writes the page that says so.

Why:    `make test` has a budget of minutes. What spends it must be seen, not guessed; and seconds
        on a busy machine say little, so CPU seconds stand beside them.
How:    as a plugin (`-p tests.times --times FILE`) it appends one JSON line a test: seconds, CPU
        seconds of its process and of the children that it waited for, and its lane. As a command
        (`python -m tests.times`) it runs every test and writes docs/internals/test-times.md, and
        tests/times.json, which the long lane plans with; `--from FILE` takes what was measured.
Source: HACKING, "Tests"."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
from tests.conftest import WITH_BROKERS
from tests.lanes import function_of

OPTION = "--times"
SLOWEST_COUNT = 40
MISTAKES = re.compile(r"planted_mistake|broken_rule|notices_a_mistake|planted_loss")
"""Names of tests that plant a mistake and fail if nothing finds it."""
KNOWN = Path(__file__).parent / "times.json"
PAGE = Path(__file__).parents[1] / "docs" / "internals" / "test-times.md"

Known = dict[str, float]
"""Seconds of one test, by test function: `{"tests/a.py::test_b": 1.5}`. CPU seconds, but for tests
that wait for brokers: there the brokers compute, in processes of their own."""


def known() -> Known:
    """What was measured last."""
    return cast(Known, json.loads(KNOWN.read_text()))


def cpu_seconds() -> float:
    """CPU seconds of this process and of all children that it has waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, default=None, help="append the seconds of each test to this file")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    path = item.config.getoption(OPTION)
    began_s, began_cpu_s = time.monotonic(), cpu_seconds()
    try:
        return (yield)
    finally:
        if path is not None:
            row = {
                "test": item.nodeid,
                "seconds": round(time.monotonic() - began_s, 3),
                "cpu_seconds": round(cpu_seconds() - began_cpu_s, 3),
                "long": item.get_closest_marker("long") is not None,
            }
            with Path(path).open("a") as file:
                file.write(json.dumps(row) + "\n")


@dataclass
class Sum:
    """What a directory or a test function takes, per lane: [fast, long]."""

    counts: list[int] = field(default_factory=lambda: [0, 0])
    seconds: list[float] = field(default_factory=lambda: [0.0, 0.0])
    cpu_seconds: list[float] = field(default_factory=lambda: [0.0, 0.0])

    def add(self, row: dict[str, object]) -> None:
        """One test more."""
        lane = int(bool(row["long"]))
        self.counts[lane] += 1
        self.seconds[lane] += cast(float, row["seconds"])
        self.cpu_seconds[lane] += cast(float, row["cpu_seconds"])


def sums(rows: Sequence[dict[str, object]]) -> tuple[dict[str, Sum], dict[str, Sum]]:
    """By directory, and by test function."""
    directories: dict[str, Sum] = defaultdict(Sum)
    functions: dict[str, Sum] = defaultdict(Sum)
    for row in rows:
        test = cast(str, row["test"])
        directories["/".join(test.split("/")[:2])].add(row)
        functions[function_of(test)].add(row)
    return directories, functions


def page(rows: Sequence[dict[str, object]]) -> str:
    """docs/internals/test-times.md."""
    directories, functions = sums(rows)
    lines = [
        "# How long the tests take",
        "",
        "Written by `.venv/bin/python -m tests.times`. CPU seconds are those of the test's own",
        "process and of children that it waited for, not of a cluster's brokers: where tests start",
        "brokers, look at the seconds. *Fast* is `make test`, *long* is `make test-long`.",
        "",
        "| directory | fast tests | CPU s | s | long tests | CPU s | s |",
        "|---|---|---|---|---|---|---|",
    ]
    whole = Sum()
    for row in rows:
        whole.add(row)
    lines += [_directory(f"`{name}`", one) for name, one in sorted(directories.items())]
    lines += [_directory("all", whole), "", "The slowest test functions, all their parameters:", ""]
    lines += ["| test | fast: tests, s | long: tests, s |", "|---|---|---|"]
    slowest = sorted(functions.items(), key=lambda item: -sum(item[1].seconds))[:SLOWEST_COUNT]
    for name, one in slowest:
        cells = [f"{one.counts[lane]}, {one.seconds[lane]:.0f}" for lane in (0, 1)]
        lines.append(f"| `{name.removeprefix('tests/')}` | {cells[0]} | {cells[1]} |")
    lines += ["", "## Planted mistakes, and the lane that has to find each", ""]
    lines += ["| test | fast | long |", "|---|---|---|"]
    lines += _mistakes(rows)
    return "\n".join(lines) + "\n"


def _mistakes(rows: Sequence[dict[str, object]]) -> list[str]:
    found: dict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for row in rows:
        function, _, parameters = cast(str, row["test"]).partition("[")
        if MISTAKES.search(function.partition("::")[2]):
            found[function][int(bool(row["long"]))].append(parameters.removesuffix("]") or "yes")
    return [
        f"| `{name.removeprefix('tests/')}` | {', '.join(fast)} | {', '.join(long)} |"
        for name, (fast, long) in sorted(found.items())
    ]


def _directory(name: str, one: Sum) -> str:
    cells = [
        f"{one.counts[lane]} | {one.cpu_seconds[lane]:.0f} | {one.seconds[lane]:.0f}"
        for lane in (0, 1)
    ]
    return f"| {name} | {cells[0]} | {cells[1]} |"


def mean_seconds(rows: Sequence[dict[str, object]]) -> Known:
    """Of each function with a test in the long lane, what one test takes."""
    _, functions = sums(rows)
    told = {}
    for name, one in sorted(functions.items()):
        if one.counts[1]:
            spent = one.seconds if name.startswith(WITH_BROKERS) else one.cpu_seconds
            told[name] = round(sum(spent) / sum(one.counts), 2)
    return told


def main() -> int:
    """Exit code: that of the run."""
    options = argparse.ArgumentParser(prog="python -m tests.times")
    options.add_argument("--from", dest="measured", type=Path, help="a file of earlier --times")
    measured: Path | None = options.parse_args().measured
    code = 0
    with tempfile.TemporaryDirectory() as scratch:
        path = measured or Path(scratch) / "times.jsonl"
        if measured is None:
            plugin = ("-p", "tests.times", OPTION, str(path))
            run = (sys.executable, "-m", "pytest", "-q", "-n", "auto", *plugin)
            code = subprocess.run(run, check=False).returncode
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    PAGE.write_text(page(rows))
    KNOWN.write_text(json.dumps(mean_seconds(rows), indent=0, sort_keys=True) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
