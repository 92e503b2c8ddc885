"""Checks that the replicas of a leaving broker fit on the brokers that stay. Pure.

Why:    if the disks of the others are too small, a broker that leaves fills them one after the
        other, and is never empty.
How:    Each replica that leaves goes to one of the brokers that its policy allows instead, the one
        with most room up to `balancer.disk.high.percent`; replicas with the fewest such brokers go
        first. Replicas that already move take their room. If a broker has not reported its room, it
        gets only the replicas that fit nowhere else, and counts as large enough.
Owns:   nothing.
Source: decision 0011."""

from collections import Counter
from collections.abc import Collection, Iterator
from functools import cache

from strandline.controller.balancer.evenness import is_surplus, places_of
from strandline.controller.balancer.plans import Plans, Wanted
from strandline.controller.decision import Facts, refuse
from strandline.controller.listing import listed
from strandline.model.cluster import Partition, Roles
from strandline.model.ids import BrokerId
from strandline.placement.explain.amounts import format_bytes
from strandline.protocol.errors import Error

_Leaving = tuple[Partition, int, tuple[BrokerId, ...]]
"""A replica that leaves: its partition, its bytes, and the brokers that may get it."""


def require_room(facts: Facts, broker: BrokerId, leaving: Collection[BrokerId]) -> None:
    """Refuse to empty `broker`, one of the leaving ones, if the others lack the room; raises
    ApiError."""
    percent = facts.config.balancer_disk_high_percent
    sizes = Counter[int]()
    for report in facts.reports.values():
        sizes |= Counter(dict(report.sizes.items()))
    room = {
        one: max(0, report.room_bytes(percent))
        for one, report in facts.reports.items()
        if one not in leaving
    }
    for group in facts.state.cluster.moving:
        for one in facts.state.cluster.groups[group].adding:
            if one in room:
                there = facts.reports[one].sizes.get(group, 0)
                room[one] -= max(0, sizes[group] - there)
    given: Counter[BrokerId] = Counter()
    for _, size, places in sorted(
        _replicas_that_leave(facts, sizes, leaving),
        key=lambda one: (len(one[2]), -one[1], one[0].group),
    ):
        known = [one for one in places if one in room]
        if not known:
            continue
        best = max(known, key=lambda one: (room[one] - given[one], -one))
        if size <= room[best] - given[best] or len(known) == len(places):
            given[best] += size
    lacking = [(count - room[one], one) for one, count in given.items() if count > room[one]]
    if not lacking:
        return
    held = sum(sizes[one.group] for one in _held(facts, broker))
    lacking.sort(key=lambda one: (-one[0], one[1]))
    texts = [
        f"broker {one} lacks {format_bytes(lack)} of {format_bytes(given[one])}"
        for lack, one in lacking
    ]
    raise refuse(
        Error.POLICY_VIOLATION,
        f"the {format_bytes(held)} of broker {broker} do not fit elsewhere: {listed(texts)} "
        f"up to {percent} % of the disk (balancer.disk.high.percent): add a broker, or room",
    )


def _replicas_that_leave(
    facts: Facts, sizes: Counter[int], leaving: Collection[BrokerId]
) -> Iterator[_Leaving]:
    cluster = facts.state.cluster
    plans = Plans(cluster.brokers.values(), frozenset())

    @cache
    def places(wanted: Wanted, replicas: Roles, broker: BrokerId) -> tuple[BrokerId, ...]:
        return tuple(one for one in places_of(wanted, replicas, broker) if one not in leaving)

    for topic in cluster.topics.values():
        ask = plans.ask(topic, cluster)
        for partition in topic.partitions:
            replicas = partition.roles
            for broker in replicas.all:
                if broker not in leaving or partition.is_moving:
                    continue
                found: tuple[BrokerId, ...] = ()
                wanted = plans.of(ask, replicas)
                if not isinstance(wanted, str) and not wanted.refusal:
                    if is_surplus(wanted, replicas, broker):
                        continue  # The replica goes, and no other broker gets it.
                    found = places(wanted, replicas, broker)
                if not found:  # Several must move together, in a combination not known yet.
                    others = set(cluster.brokers) - set(leaving) - set(replicas.all)
                    found = tuple(sorted(others))
                yield partition, sizes[partition.group], found


def _held(facts: Facts, broker: BrokerId) -> list[Partition]:
    return [one for one in facts.state.cluster.groups.values() if broker in one.roles.all]
