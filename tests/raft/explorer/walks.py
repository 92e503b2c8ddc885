"""Random walks through spaces that are too large to be explored.

Why:    beyond what is exhaustive, something is better than nothing: more elections, grants and
        changes than any scope that ends.
How:    the same steps and the same judgement. From a state a kind of step is drawn, and one of its
        steps: else the few that matter would be lost among rounds of replication. A walk ends where
        nothing is left to be done, or after `STEPS_MAX`. Replicas' states are kept from walk to
        walk for a while, as most come again.
Owns:   nothing."""

import random
from collections import Counter
from dataclasses import dataclass, field

from tests.raft.explorer.scope import Kind, Scope
from tests.raft.explorer.search import BreachError
from tests.raft.explorer.space import Space, State, Step

STEPS_MAX = 120
WALKS_PER_SPACE = 100
WEIGHTS = {
    Kind.REPLICATE: 40,
    Kind.VOTE: 30,
    Kind.FENCE: 30,
    Kind.APPOINT: 30,
    Kind.REPORT: 20,
    Kind.PROPOSE: 20,
    Kind.CRASH: 20,
    Kind.RESTART: 1,
    Kind.GRANT: 2,
}
"""Of the kinds that a group gets on by, or that say more later than at once; of all others 5."""


@dataclass(slots=True)
class Walks:
    """What was done."""

    count: int = 0
    step_count: int = 0
    taken: Counter[Kind] = field(default_factory=Counter)


def walk(scope: Scope, *, seed: int, count: int, kind_of_space: type[Space] = Space) -> Walks:
    """Take `count` walks from `seed` on. Raises BreachError, with the steps that led there."""
    done = Walks()
    space = kind_of_space(scope)
    for number in range(seed, seed + count):
        if done.count and done.count % WALKS_PER_SPACE == 0:
            space = kind_of_space(scope)
        _walk(space, random.Random(number), done, number)
        done.count += 1
    return done


def _walk(space: Space, rng: random.Random, done: Walks, seed: int) -> None:
    state = space.initial
    way: list[Step] = []
    try:
        for _ in range(STEPS_MAX):
            space.check(state)
            by_kind: dict[Kind, list[tuple[Step, State]]] = {}
            for step, after in space.steps(state):
                if after != state:
                    by_kind.setdefault(step[0], []).append((step, after))
            if not by_kind:
                return
            kinds = sorted(by_kind)
            (kind,) = rng.choices(kinds, [WEIGHTS.get(kind, 5) for kind in kinds])
            step, after = rng.choice(sorted(by_kind[kind], key=_name_of))
            state = space.pruned(after)
            way.append(step)
            done.taken[kind] += 1
            done.step_count += 1
    except AssertionError as error:
        steps = "\n".join(map(space.describe, way))
        raise BreachError(f"{error}\nin walk {seed}, after\n{steps}") from error


def _name_of(each: tuple[Step, State]) -> str:
    return str(each[0])
