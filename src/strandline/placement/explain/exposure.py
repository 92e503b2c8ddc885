"""What one more loss would do to a whole cluster, domain by domain.

Why:    operators ask "which zone may not go today" before a maintenance and in an outage.
How:    each domain of each level is lost in turn, beside the brokers that are down. A domain that
        holds the same brokers as a wider one is not listed twice.
Source: decision 0008."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from strandline.model.ids import BrokerId
from strandline.placement.survival.replicas import LOSS_LEVELS, Placement
from strandline.placement.topology.universe import Universe


class Exposure(msgspec.Struct, frozen=True):
    """The effect of losing one domain."""

    level: str
    domain: str
    brokers: tuple[BrokerId, ...]
    stops: int
    """Partitions whose writes it would stop, of those that go on now."""
    loses: int
    """Partitions that may lose acknowledged writes with it for good, of those that do not now."""


def exposures(
    universe: Universe,
    partitions: Sequence[tuple[Placement, tuple[BrokerId, ...], int]],
) -> tuple[Exposure, ...]:
    """Every domain whose loss does something, widest first.

    `partitions`: placements, their voters that are down, and how many partitions are like that."""
    found = []
    told: set[int] = set()
    for level in LOSS_LEVELS:
        domains = universe.domains(level)
        stops, loses = Counter[int](), Counter[int]()
        for placement, down, count in partitions:
            quorum, gone = placement.quorum, len(down)
            living = (one.broker for one in placement.voters if one.broker not in down)
            here = Counter(domains.of[universe.index[broker]] for broker in living)
            for domain, lost in here.items():
                if gone < quorum.stops_at <= gone + lost:
                    stops[domain] += count
                if gone < quorum.loses_at <= gone + lost:
                    loses[domain] += count
        for domain, mask in enumerate(domains.masks):
            if not domains.values[domain] or mask in told:
                continue
            told.add(mask)
            if stops[domain] or loses[domain]:
                name, brokers = domains.names[domain], universe.brokers(mask)
                found.append(Exposure(level, name, brokers, stops[domain], loses[domain]))
    return tuple(found)
