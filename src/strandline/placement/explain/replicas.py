"""Why each replica is where it is: which brokers were refused, and which would do as well or worse.

How:    each replica is taken out, and every candidate is tried in its place beside the others: not
        eligible, with the reason; eligible at the same cost, so that load or chance decided; or
        eligible at a higher (or, for an old placement, a lower) cost."""

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
    """The place of the best leader preference that the broker meets; None where it meets none."""
    domains: tuple[DomainShare, ...]
    """Widest first; levels that are not said are left out."""
    equal: tuple[BrokerId, ...]
    """Who would do as well: load, then chance decided."""
    worse: tuple[BrokerId, ...]
    """Who is eligible, and costs more by the soft constraints."""
    better: tuple[BrokerId, ...]
    """Who is eligible and costs less; nobody beside the best placement."""
    refused: tuple[RefusedBrokers, ...]
    """Who is not eligible, by reason."""


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
