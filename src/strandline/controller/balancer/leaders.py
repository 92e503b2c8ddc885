"""Evens out the number of preferred leaders on each broker. Pure.

Why:    replicas move, topics come and go: evenly placed leaders do not stay even.
How:    The replicas that meet the best preference that any of them meets may lead a partition.
        The balancer counts the preferred leaders of all partitions, not the present leaders: those
        change with every failure and return by themselves. A broker that leads two more than
        another, and a twentieth more, hands one on.
Owns:   nothing.
Source: decision 0012."""

from collections.abc import Iterator, Mapping, Sequence

from strandline.controller.balancer.evenness import Movable
from strandline.model.ids import BrokerId
from strandline.placement.solver.chains import Chains

EXCESS_RATIO = 1.05


def evened_leaders(
    movables: Sequence[Movable], led: Mapping[BrokerId, int], *, changes_max: int
) -> Iterator[tuple[Movable, BrokerId] | None]:
    """(a partition that keeps its policy, its new preferred leader), each partition once; None for
    a step without a result. `led`: how many preferred leaders each broker has."""
    if not movables:
        return
    universe = movables[0].wanted.plan().universe
    masks, chosen = [], []
    for one in movables:
        may = one.wanted.may_lead(one.partition.replicas)
        masks.append(universe.mask(universe.index[broker] for broker in may))
        chosen.append(universe.index[one.partition.replicas[0]])
        yield None
    before = list(chosen)
    counts = [led.get(one.id, 0) for one in universe.candidates]
    chains = Chains(masks, chosen, counts, excess_ratio=EXCESS_RATIO)
    changed: set[int] = set()
    while len(changed) < changes_max and (numbers := chains.exchange()):
        changed.update(numbers)
        yield None
    for number in sorted(changed):
        if chosen[number] != before[number]:
            yield movables[number], universe.candidates[chosen[number]].id
