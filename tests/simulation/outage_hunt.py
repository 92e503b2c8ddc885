"""Finds seeds that show planted mistakes: `python -m tests.simulation.outage_hunt [NAME...]`."""

import sys
import time

import pytest
from tests.simulation.outage_mutants import OUTAGE_MUTANTS
from tests.simulation.test_each_invariant import only

SEEDS = 400
LIMIT_S = 45


def main() -> None:
    """For each mistake: the first seed that finds it, and how it is found."""
    wanted = set(sys.argv[1:])
    for mutant in OUTAGE_MUTANTS:
        name = mutant.plant.__name__
        if wanted and name not in wanted:
            continue
        begin, seed, found = time.monotonic(), 0, None
        with pytest.MonkeyPatch.context() as patch:
            mutant.plant(patch)
            if mutant.promise:
                only(mutant.promise, patch)
            while found is None and seed < SEEDS and time.monotonic() - begin < LIMIT_S:
                seed += 1
                found = mutant.violation(seed)
        told = f"{name} {mutant.promise}: {seed} after {time.monotonic() - begin:.0f} s: {found}"
        sys.stdout.write(f"{told}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
