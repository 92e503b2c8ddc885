"""The random numbers of a room that decides.

Why:    two worlds, one code: a broker draws from a generator seeded by the operating system, the
        simulator from the seed of its scenario. A deciding room gets the generator handed in and
        imports no `random`, so that the same inputs always lead to the same decision.
How:    `Rng` has the methods that the rooms call. `random.Random` has them all.
Source: design section 3."""

import random
from collections.abc import Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Rng(Protocol):
    """A generator of random numbers; the same seed gives the same numbers in the same order."""

    def random(self) -> float:
        """A number from 0.0, inclusive, to 1.0, exclusive."""

    def getrandbits(self, k: int, /) -> int:
        """A number from 0, inclusive, to 2 ** `k`, exclusive."""

    def choice(self, seq: Sequence[T], /) -> T:
        """One item of `seq`, which is not empty; each is as likely."""


def seeded(seed: int) -> Rng:
    """A generator for a report that must look the same each time it is made."""
    return random.Random(seed)
