"""Finds seeds that show planted mistakes: `python -m tests.simulation.outage_hunt [NAME...]`."""

import sys

import pytest
from tests.simulation.hunt import hunt
from tests.simulation.outage_mutants import OUTAGE_MUTANTS
from tests.simulation.test_each_invariant import only

SEEDS = 400
LIMIT_S = 45


def main() -> None:
    """For each mistake: the first seed that finds it, and how it is found."""
    wanted = set(sys.argv[1:])
    for mutant in OUTAGE_MUTANTS:
        if wanted and mutant.plant.__name__ not in wanted:
            continue
        with pytest.MonkeyPatch.context() as patch:
            if mutant.promise:
                only(mutant.promise, patch)
            told = hunt(mutant.plant, mutant.violation, seeds=SEEDS, limit_s=LIMIT_S)
        sys.stdout.write(told)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
