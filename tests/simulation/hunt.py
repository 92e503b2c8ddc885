"""Finds seeds that show planted mistakes: `python -m tests.simulation.hunt [NAME...]`.

With `--blind SWARM`: in a family of seeds as it is drawn, whatever the mistake would need; and with
`--count S`, how many of the seeds that run in so many seconds of a processor show it."""

import argparse
import logging
import sys
import time
from collections.abc import Callable

import pytest
from tests.simulation.mutants import MUTANTS, Plant, breaks_a_promise

from strandline.simulation.swarm.families import DRAWS, Swarm

SEEDS = 10_000
LIMIT_S = 120


def hunt(plant: Plant, find: Callable[[int], object], *, seeds: int, limit_s: float) -> str:
    """Tells the first seed in which `find` finds it, or how many do not, what was found, and how
    long that took (of a processor)."""
    begin, seed, found = time.process_time(), 0, None
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        while not found and seed < seeds and time.process_time() - begin < limit_s:
            seed += 1
            found = find(seed)
    told = f"seed {seed}: {found}" if found else f"not by {seed} seeds"
    return f"{plant.__name__:42} {time.process_time() - begin:5.1f} s, {told}\n"


def count(plant: Plant, find: Callable[[int], object], *, limit_s: float) -> str:
    """Tells how many of the seeds that run within `limit_s` of a processor show it."""
    begin, seed, shown = time.process_time(), 0, 0
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        while time.process_time() - begin < limit_s:
            seed += 1
            shown += bool(find(seed))
    return f"{plant.__name__:42} shown by {shown} of {seed}\n"


def main() -> None:
    """For each mistake: its seed, and how long that took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="of mistakes; all of them")
    parser.add_argument("--blind", type=Swarm, help=", ".join(Swarm))
    parser.add_argument("--count", type=float, help="seconds of a processor for each")
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)

    def find_blindly(seed: int) -> bool:
        return breaks_a_promise(DRAWS[asked.blind](seed))

    for mutant in MUTANTS:
        if not asked.names or mutant.plant.__name__ in asked.names:
            find = find_blindly if asked.blind else mutant.is_found_by
            told = (
                count(mutant.plant, find, limit_s=asked.count)
                if asked.count
                else hunt(mutant.plant, find, seeds=SEEDS, limit_s=LIMIT_S)
            )
            sys.stdout.write(told)
            sys.stdout.flush()


if __name__ == "__main__":
    main()
