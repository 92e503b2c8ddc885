"""What crosses regions and zones for each byte that is produced.

How:    the leader sends each other replica, observers too, its own copy, compressed as it came:
        as many bytes cross as replicas are elsewhere. Producers are taken to be where the leader
        is. What consumers fetch comes on top."""

from collections import Counter

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
    """That stay in it and leave the leader's zone."""
    links: tuple[Link, ...]
    """By region, in the order of their names."""


def traffic_of(placement: Placement) -> tuple[Traffic, ...]:
    """For each voter as the leader, in the order of the voters."""
    found = []
    for leader in placement.voters:
        here = leader.labels
        others = [one.labels for one in placement.replicas if one is not leader]
        regions = Counter(one.region for one in others if one.region != here.region)
        zones = sum(one.region == here.region and one.zone != here.zone for one in others)
        found.append(
            Traffic(
                leader=leader.broker,
                cross_region=sum(regions.values()),
                cross_zone=zones,
                links=tuple(
                    Link(here.region, region, copies) for region, copies in sorted(regions.items())
                ),
            )
        )
    return tuple(found)
