"""The fewest moves that make a partition's replicas right again, by the same constraints.

Why:    a move copies data; a new placement would move replicas that were right.
How:    Leave out no replica, then one, then two ..., and let the search fill their seats. Of the
        sets of the same size, take the one that keeps the fewest replicas on absent brokers, then
        the one whose result costs least, then the one that moves away from the fullest brokers. A
        replica on a broker that is no candidate, or that no rule asks for, is always left out. The
        search picks by load.
Source: design section 7; decision 0008."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import msgspec

from strandline.model.ids import BrokerId
from strandline.placement.constraints.contract import Seat
from strandline.placement.constraints.least_allocated import LeastAllocated
from strandline.placement.policy.document import Role
from strandline.placement.solver.judge import seat
from strandline.placement.solver.plan import Plan
from strandline.placement.solver.search import Search, lowest, orbits_of

STEPS_MAX = 20_000
STEPS_EACH_MAX = 1_000


class Repair(msgspec.Struct, frozen=True):
    """The repair of a partition."""

    kept: tuple[tuple[BrokerId, Role], ...]
    leaving: tuple[BrokerId, ...]
    """The brokers whose replicas go once the others have come."""
    coming: tuple[tuple[BrokerId, Role], ...]
    cost: int
    """Of the placement then, by the soft constraints."""


def repair(
    plan: Plan,
    replicas: Sequence[tuple[BrokerId, Role]],
    *,
    may_come: int | None = None,
    away: int = 0,
    held: int = 0,
    loads: LeastAllocated | None = None,
    cost_max: int | None = None,
    leaving_max: int | None = None,
    steps_max: int = STEPS_MAX,
) -> Repair | None:
    """The fewest replicas to replace; None where nothing that was found makes it right.

    A right placement is kept as it is, whatever it costs, unless that is more than `cost_max`.
    `leaving_max`: no more are replaced.
    `may_come`: the candidates that may be given a replica, all when None. `away`: those that had
    better go than others; `held`: those that may not. `loads`: what they hold,
    if not as the plan has it."""
    index = plan.universe.index
    known = [(index[broker], role) for broker, role in replicas if broker in index]
    here = plan.universe.mask(bit for bit, _ in known)
    candidates = plan.universe.candidates
    if loads is None:
        loads = LeastAllocated([one.replicas for one in candidates])
    coming = [mask if may_come is None else mask & may_come for mask in plan.allowed]
    # Brokers that may get a replica are not alike to those that may not.
    orbits = orbits_of(plan if may_come is None else replace(plan, allowed=tuple(coming)))
    steps = 0
    most = len(known) if leaving_max is None else min(leaving_max, len(known))
    for left_out in range(most + 1):
        best: tuple[tuple[int, int, int], list[Seat], list[Seat]] | None = None
        for kept in _kept(plan, known, left_out):
            stay = plan.universe.mask(bit for bit, _ in kept)
            if here & held & ~stay:
                continue
            found = Search(
                plan,
                orbits,
                first=kept,
                allowed=[
                    come | mask & stay for come, mask in zip(coming, plan.allowed, strict=True)
                ],
                pick=lambda mask: lowest(loads.prefer(mask)),
                nodes_max=min(STEPS_EACH_MAX, steps_max),
            ).run()
            steps += found.nodes
            is_dear = cost_max is not None and found.cost > cost_max
            if found.seats is not None and not is_dear:
                load = sum(loads.held(bit) for bit, _ in kept)
                rank = (stay & away).bit_count(), found.cost, load
                if best is None or rank < best[0]:
                    best = rank, kept, found.seats
            if steps > steps_max:
                break
        if best is not None:
            return _repair(plan, replicas, best[1], best[2], best[0][1])
        if steps > steps_max:
            return None
    return None


def _kept(plan: Plan, known: Sequence[tuple[int, Role]], left_out: int) -> Iterator[list[Seat]]:
    """The ways to leave out so many replicas, as far as the others may stay together."""
    for kept in combinations(known, len(known) - left_out):
        seats, surplus = seat(plan, kept)
        if not surplus and _may_stay(plan, seats):
            yield seats


def _may_stay(plan: Plan, seats: Sequence[Seat]) -> bool:
    for position, (bit, group) in enumerate(seats):
        mask = plan.allowed[group]
        for one in plan.hard:
            mask &= one.eligible(seats[:position], group)
        if not mask >> bit & 1:
            return False
    return True


def _repair(
    plan: Plan,
    replicas: Sequence[tuple[BrokerId, Role]],
    kept: Sequence[Seat],
    seats: Sequence[Seat],
    cost: int,
) -> Repair:
    def named(some: Sequence[Seat]) -> tuple[tuple[BrokerId, Role], ...]:
        groups, candidates = plan.shape.groups, plan.universe.candidates
        return tuple((candidates[bit].id, groups[group].role) for bit, group in some)

    stay = named(kept)
    ids = {broker for broker, _ in stay}
    return Repair(
        kept=stay,
        leaving=tuple(broker for broker, _ in replicas if broker not in ids),
        coming=named([one for one in seats if one not in kept]),
        cost=cost,
    )
