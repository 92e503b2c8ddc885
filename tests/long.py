"""Runs the long lane: the tests marked `long`, or a share of them that fits into some seconds.

Why:    many seeds of planted mistakes, every client with every fault, thousands of partitions: an
        hour or more. A submission runs a share, another one for each tree of files, so that all of
        it is run again and again without waiting for it.
How:    tests go in chunks of about a minute, each one run of pytest on all cores. Without a tree
        the order is that of the files; with one it is drawn from its hash, and no chunk begins
        once the seconds are over. `tests/times.json` says how long each test function takes. A
        chunk that fails prints the command that repeats it, and the others are run all the same.

            python -m tests.long                               all of it
            python -m tests.long --tree HASH --seconds 300     a share
Source: HACKING, "Tests"."""

import argparse
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence

from tests.lanes import function_of
from tests.times import Known, known

CHUNK_S = 60
UNKNOWN_CPU_S = 3.0
PYTEST = (sys.executable, "-m", "pytest", "-q", "-n", "auto")


def order(tests: Iterable[str], tree: str) -> list[str]:
    """Test functions in an order that the tree's hash decides; its own order without one."""
    units = dict.fromkeys(function_of(test) for test in tests)
    if not tree:
        return list(units)
    return sorted(units, key=lambda unit: hashlib.sha256(f"{tree} {unit}".encode()).digest())


def chunks(tests: Sequence[str], times: Known, *, tree: str, cores: int) -> Iterator[list[str]]:
    """Node ids, in runs of about a minute each; a function with more than that has its own."""
    members: dict[str, list[str]] = {}
    for test in tests:
        members.setdefault(function_of(test), []).append(test)
    chunk: list[str] = []
    left_s = float(CHUNK_S * cores)
    for unit in order(tests, tree):
        for test in members[unit]:
            chunk.append(test)
            left_s -= times.get(unit, UNKNOWN_CPU_S)
            if left_s <= 0:
                yield chunk
                chunk, left_s = [], float(CHUNK_S * cores)
    if chunk:
        yield chunk


def collected() -> list[str]:
    """The node ids of all tests of the long lane."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "long"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"the tests cannot be collected:\n{done.stdout}{done.stderr}")
    return [line for line in done.stdout.splitlines() if line.startswith("tests/")]


def say(line: str) -> None:
    """Above the output of the runs that follow."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    """Exit code: 0 if every chunk passed."""
    options = argparse.ArgumentParser(prog="python -m tests.long")
    options.add_argument("--tree", default="", help="draw the order from this hash")
    options.add_argument("--seconds", type=int, default=0, help="begin no chunk after so long")
    asked = options.parse_args()
    began_s = time.monotonic()
    tests, times = collected(), known()
    cores = os.cpu_count() or 1
    minutes = sum(times.get(function_of(test), UNKNOWN_CPU_S) for test in tests) / cores / 60
    bound = f"a share of {asked.seconds} s" if asked.seconds else f"about {minutes:.0f} minutes"
    say(f"{len(tests)} tests of the long lane, {bound}")
    run_count, failed_count = 0, 0
    for chunk in chunks(tests, times, tree=asked.tree, cores=cores):
        if asked.seconds and time.monotonic() - began_s >= asked.seconds:
            break
        run_count += len(chunk)
        if subprocess.run([*PYTEST, *chunk], check=False).returncode != 0:
            repeat = " ".join(f"'{function}'" for function in order(chunk, ""))
            say(f"again: .venv/bin/pytest -q -n auto {repeat}")
            failed_count += 1
    say(f"{run_count} of {len(tests)} tests of the long lane were run, {failed_count} runs failed")
    return 1 if failed_count else 0


if __name__ == "__main__":
    sys.exit(main())
