"""Looks for seeds that find a mutant: `python -m tests.raft.cluster.hunt NAME [COUNT [FIRST]]`."""

import sys

from tests.raft.cluster.mutants import MUTANTS
from tests.raft.cluster.schedule import Schedule


def main(arguments: list[str]) -> None:
    """Writes a line for each seed found, the first five of them."""
    found = 0
    with MUTANTS[arguments[0]].planted():
        count = int(arguments[1]) if len(arguments) > 1 else 10_000
        first = int(arguments[2]) if len(arguments) > 2 else 0
        for seed in range(first, first + count):
            try:
                Schedule(seed).run()
            except Exception as error:
                first_line = str(error).split("\n")[0]
                sys.stdout.write(f"{seed}: {type(error).__name__} {first_line}\n")
                found += 1
                if found == 5:
                    break


if __name__ == "__main__":
    main(sys.argv[1:])
