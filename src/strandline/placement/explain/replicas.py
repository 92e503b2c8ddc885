"""Why each replica is on its broker: which others are not eligible, and which are as good or worse.

How:    for each replica this tries every candidate in its place, beside the other replicas. A
        candidate is not eligible, with the reason; or eligible at the same cost, so that load or
        chance decided; or eligible at a higher (or, for an old placement, a lower) cost."""

from collections.abc import Sequence

import msgspec

from strandline.model.ids import BrokerId
from strandline.placement.constraints.contract import Seat
from strandline.placement.policy.document import Role
from strandline.placement.solver.plan import Plan
from strandline.placement.solver.refusal import RefusedBrokers, refused_brokers
from strandline.placement.topology.universe import LEVELS, bits_of


class DomainShare(msgspec.Struct, frozen=True):
    """The domain of a replica on one level, and how many of the partition's replicas are in it."""

    level: str
    domain: str
    replicas: int


class ReplicaReason(msgspec.Struct, frozen=True):
    """Why one replica is on its broker."""

    broker: BrokerId
    role: Role
    rule: int
    """Its place in the policy's rules; -1 for the default."""
    preference: int | None
    """The place of the best leader preference that the broker meets; None if it meets none."""
    domains: tuple[DomainShare, ...]
    """Widest first, without levels that the broker has no label for."""
    equal: tuple[BrokerId, ...]
    """The brokers that are as good: load, then chance decided."""
    worse: tuple[BrokerId, ...]
    """The eligible brokers with a higher cost by the soft constraints."""
    better: tuple[BrokerId, ...]
    """The eligible brokers with a lower cost; none for the best placement."""
    refused: tuple[RefusedBrokers, ...]
    """The brokers that are not eligible, by reason."""


def explain_replicas(plan: Plan, seats: Sequence[Seat]) -> tuple[ReplicaReason, ...]:
    """Why each of these seats is taken by its broker."""
    cost = plan.cost(seats)
    return tuple(_explain(plan, seats, position, cost) for position in range(len(seats)))


def _explain(plan: Plan, seats: Sequence[Seat], position: int, cost: int) -> ReplicaReason:
    bit, group = seats[position]
    others = [*seats[:position], *seats[position + 1 :]]
    universe = plan.universe
    eligible = plan.allowed[group] & ~universe.mask([b for b, _ in others])
    for one in plan.hard:
        eligible &= one.eligible(others, group)
    compared: dict[int, list[BrokerId]] = {-1: [], 0: [], 1: []}
    for other in bits_of(eligible & ~(1 << bit)):
        instead = plan.cost([*seats[:position], (other, group), *seats[position + 1 :]])
        order = (instead > cost) - (instead < cost)
        compared[order].append(universe.candidates[other].id)
    tiers = plan.leader_tiers
    return ReplicaReason(
        broker=universe.candidates[bit].id,
        role=plan.shape.groups[group].role,
        rule=plan.shape.groups[group].rule,
        preference=next((n for n, tier in enumerate(tiers) if tier >> bit & 1), None),
        domains=_shares(plan, seats, bit),
        equal=tuple(compared[0]),
        worse=tuple(compared[1]),
        better=tuple(compared[-1]),
        refused=refused_brokers(plan, others, group),
    )


def _shares(plan: Plan, seats: Sequence[Seat], bit: int) -> tuple[DomainShare, ...]:
    shares = []
    for level in LEVELS:
        domains = plan.universe.domains(level)
        number = domains.of[bit]
        if domains.values[number]:
            held = sum(domains.of[other] == number for other, _ in seats)
            shares.append(DomainShare(level, domains.names[number], held))
    return tuple(shares)
