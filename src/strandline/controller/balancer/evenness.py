"""Moves replicas from full brokers to empty ones, if nothing else needs to move. Pure.

Why:    otherwise an added broker stays empty: replicas move only if something is wrong.
How:    The fullest broker gives to the emptiest one that may have one of its replicas at no higher
        cost, if it holds a fourth more than that, and at least two more. Each such move lowers the
        sum of the squares of what brokers hold, so the moves end.
Owns:   nothing.
Source: decision 0010."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from strandline.controller.balancer.plans import Wanted
from strandline.model.cluster import Partition, Roles
from strandline.model.ids import BrokerId
from strandline.placement.constraints.contract import Seat

DIFFERENCE_MIN = 2
EXCESS_RATIO = 1.25


@dataclass(frozen=True, slots=True)
class Movable:
    """A partition that keeps its policy, and the constraints of the policy."""

    partition: Partition
    wanted: Wanted


def uneven_pairs(
    loads: Mapping[BrokerId, int], settled: frozenset[BrokerId]
) -> Iterator[tuple[BrokerId, BrokerId]]:
    """(the broker that holds too many, one that holds fewer), the most uneven first."""
    brokers = sorted(settled)
    for full in sorted(brokers, key=lambda one: -loads.get(one, 0)):
        for empty in sorted(brokers, key=lambda one: loads.get(one, 0)):
            more, less = loads.get(full, 0), loads.get(empty, 0)
            if more - less < DIFFERENCE_MIN or more <= less * EXCESS_RATIO:
                break
            yield full, empty


def exchanged(movable: Movable, full: BrokerId, empty: BrokerId) -> Roles | None:
    """The replicas with the one broker in place of the other, if that is as good."""
    replicas = movable.partition.roles
    if full not in replicas.all or empty in replicas.all:
        return None
    wanted, plan = movable.wanted, movable.wanted.plan()
    after = replicas.exchanged(full, empty)
    others, group, mask = _without(wanted, replicas, full)
    bit = plan.universe.index[empty]
    if not mask >> bit & 1 or plan.cost([*others, (bit, group)]) > wanted.cost(replicas):
        return None
    return wanted.lead_first(after, {}, present=replicas.voters[0])


def is_surplus(wanted: Wanted, replicas: Roles, broker: BrokerId) -> bool:
    """Whether no rule requires this broker's replica beside the others."""
    bit = wanted.plan().universe.index[broker]
    return all(seat != bit for seat, _ in wanted.seats(replicas))


def places_of(wanted: Wanted, replicas: Roles, broker: BrokerId) -> list[BrokerId]:
    """The brokers that may take this one's place by the hard constraints, if the other replicas
    stay. Some rule requires this replica."""
    _, _, mask = _without(wanted, replicas, broker)
    index = wanted.plan().universe.index
    return [one for one, bit in index.items() if mask >> bit & 1 and one not in replicas.all]


def _without(wanted: Wanted, replicas: Roles, broker: BrokerId) -> tuple[list[Seat], int, int]:
    """(the seats of the others, the group of this one, the brokers that may take its seat, as
    bits)"""
    plan = wanted.plan()
    bit = plan.universe.index[broker]
    seats = wanted.seats(replicas)
    others = [one for one in seats if one[0] != bit]
    (group,) = (group for seat, group in seats if seat == bit)
    mask = plan.allowed[group]
    for one in plan.hard:
        mask &= one.eligible(others, group)
    return others, group, mask


def by_broker(movables: Sequence[Movable]) -> dict[BrokerId, list[Movable]]:
    """{broker: the partitions of which it holds a replica}"""
    found: dict[BrokerId, list[Movable]] = {}
    for one in movables:
        for broker in one.partition.roles.all:
            found.setdefault(broker, []).append(one)
    return found
