"""Finds seeds that show planted mistakes: `python -m tests.simulation.hunt [NAME...]`."""

import sys
import time

import pytest
from tests.simulation.mutants import MUTANTS

SEEDS = 400
LIMIT_S = 120


def main() -> None:
    """For each mistake: its seed, and how many runs that took."""
    wanted = set(sys.argv[1:])
    for mutant in MUTANTS:
        name = mutant.plant.__name__
        if wanted and name not in wanted:
            continue
        begin = time.monotonic()
        found = None
        with pytest.MonkeyPatch.context() as patch:
            mutant.plant(patch)
            for seed in range(1, SEEDS):
                if mutant.is_found_by(seed):
                    found = seed
                    break
                if time.monotonic() - begin > LIMIT_S:
                    break
        sys.stdout.write(f"{name:40} {found} after {time.monotonic() - begin:.1f} s\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
