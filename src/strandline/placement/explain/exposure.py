"""What one more loss would do to a whole cluster, domain by domain.

Why:    "which zone may not go today" is asked before a maintenance, and answered in an outage.
How:    each domain of each level is lost in turn, beside the brokers that are down. A domain that
        holds the same brokers as a wider one is not told twice.
Source: decision 0008."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from strandline.model.ids import BrokerId
from strandline.placement.survival.replicas import LOSS_LEVELS, Placement
from strandline.placement.topology.universe import Universe, bits_of


class Exposure(msgspec.Struct, frozen=True):
    """What is lost with one domain."""

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
        for mask, name, value in zip(domains.masks, domains.names, domains.values, strict=True):
            if not value or mask in told:
                continue
            told.add(mask)
            brokers = {universe.candidates[bit].id for bit in bits_of(mask)}
            counts: Counter[str] = Counter()
            for placement, down, count in partitions:
                here = sum(
                    one.broker in brokers and one.broker not in down for one in placement.voters
                )
                quorum = placement.quorum
                if len(down) < quorum.stops_at <= len(down) + here:
                    counts["stops"] += count
                if len(down) < quorum.loses_at <= len(down) + here:
                    counts["loses"] += count
            if counts:
                found.append(
                    Exposure(level, name, tuple(sorted(brokers)), counts["stops"], counts["loses"])
                )
    return tuple(found)
