"""Bytes that cross regions and zones for each byte that is produced.

How:    The leader sends each replica of its region a copy, compressed as it came, and one to each
        other region, where a relay forwards it to the others, observers too; voters are relays
        before observers are. This assumes producers in the leader's region. Consumers' fetches come
        on top, and entries that the leader sends again around a failed relay."""

import msgspec

from strandline.model.ids import BrokerId
from strandline.placement.survival.replicas import Placement


class Link(msgspec.Struct, frozen=True):
    """Copies that go from one region to another one."""

    source: str
    target: str
    copies: int


class Traffic(msgspec.Struct, frozen=True):
    """Bytes for each byte produced, when this broker leads."""

    leader: BrokerId
    cross_region: int
    """That leave the leader's region."""
    cross_zone: int
    """That stay in a region and leave the zone of the leader, or of the relay there."""
    links: tuple[Link, ...]
    """By region, in the order of their names."""


def traffic_of(placement: Placement) -> tuple[Traffic, ...]:
    """For each voter as the leader, in the order of the voters."""
    found = []
    for leader in placement.voters:
        here = leader.labels.region
        # {region: the relay there}
        sources = {here: leader}
        for one in (*placement.voters, *placement.replicas):
            sources.setdefault(one.labels.region, one)
        found.append(
            Traffic(
                leader=leader.broker,
                cross_region=len(sources) - 1,
                cross_zone=sum(
                    one.labels.zone != sources[one.labels.region].labels.zone
                    for one in placement.replicas
                ),
                links=tuple(Link(here, region, 1) for region in sorted(sources) if region != here),
            )
        )
    return tuple(found)
