"""Replays one schedule with its trace: `python -m tests.raft.cluster.replay SEED [MUTANT]`."""

import sys
from contextlib import nullcontext

from tests.raft.cluster.mutants import MUTANTS
from tests.raft.cluster.schedule import Schedule


def main(arguments: list[str]) -> None:
    """The trace goes to standard output; a violation is raised at its end."""
    planted = MUTANTS[arguments[1]].planted() if len(arguments) > 1 else nullcontext()
    with planted:
        Schedule(int(arguments[0]), trace=_write).run()


def _write(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
