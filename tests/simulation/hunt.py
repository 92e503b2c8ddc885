"""Finds seeds that show planted mistakes: `python -m tests.simulation.hunt [NAME...]`.

With `--blind SWARM`: in a family of seeds as it is drawn, with nothing that helps to see them."""

import argparse
import logging
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

import pytest
from tests.simulation.mutants import MUTANTS, Mutant

from strandline.simulation.families import DRAWS, Swarm
from strandline.simulation.swarm import run_scenario

SEEDS = 10_000
LIMIT_S = 120


def search(mutant: Mutant, is_found_by: Callable[[int], bool]) -> str:
    """Its first seed, and what of a processor's time that took."""
    begin, seed, is_found = time.process_time(), 0, False
    with pytest.MonkeyPatch.context() as patch:
        mutant.plant(patch)
        while not is_found and seed < SEEDS and time.process_time() - begin < LIMIT_S:
            seed += 1
            is_found = is_found_by(seed)
    told = f"seed {seed}" if is_found else f"not by {seed} seeds"
    return f"{mutant.plant.__name__:42} {told}, {time.process_time() - begin:.1f} s"


def is_broken_by(seed: int, swarm: Swarm) -> bool:
    """Whether the run of a seed of that family breaks a promise."""
    return run_scenario(DRAWS[swarm](seed)).violation is not None


def main(arguments: Sequence[str] | None = None) -> None:
    """For each mistake: its seed, and how long that took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="of mistakes; all of them")
    parser.add_argument("--blind", type=Swarm, help=", ".join(Swarm))
    asked = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    for mutant in MUTANTS:
        if asked.names and mutant.plant.__name__ not in asked.names:
            continue
        blindly = None if asked.blind is None else partial(is_broken_by, swarm=asked.blind)
        sys.stdout.write(search(mutant, blindly or mutant.is_found_by) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
