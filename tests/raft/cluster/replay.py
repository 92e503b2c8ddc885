"""Replays one schedule and writes its trace: `python -m tests.raft.cluster.replay SEED [MUTANT]`."""

import sys

from strandline.raft.core import Raft
from tests.raft.cluster.schedule import Schedule


def main(arguments: list[str]) -> None:
    """The trace goes to standard output, a violation is raised at its end."""
    core: type[Raft] = Raft
    schedule = Schedule(int(arguments[0]), core)
    schedule.world.trace = lambda line: _write(line)
    schedule.run()


def _write(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
