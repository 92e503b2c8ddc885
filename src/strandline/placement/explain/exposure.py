"""The effect of one more loss on a whole cluster, domain by domain.

Why:    operators ask "which zone may not go today" before a maintenance and in an outage.
How:    this loses each domain of each level in turn, beside the brokers that are down or behind, by
        the model of `survival.fates`. A domain with the same brokers as a wider one is not listed
        twice.
Source: decision 0008."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from strandline.model.ids import BrokerId
from strandline.placement.survival.courses import Rules
from strandline.placement.survival.fates import Fates
from strandline.placement.survival.replicas import LOSS_LEVELS, Placement, domain_at
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
    universe: Universe, partitions: Iterable[tuple[Placement, Rules, int]]
) -> tuple[Exposure, ...]:
    """Every domain whose loss does something, widest first.

    `partitions`: placements at present, the rules of their topics, and how many partitions are like
    that."""
    known = [
        (Fates(one, rules), {*one.lost}, one.has_stopped, count) for one, rules, count in partitions
    ]
    found = []
    seen: set[int] = set()
    for level in LOSS_LEVELS:
        domains = universe.domains(level)
        stops, loses = Counter[int](), Counter[int]()
        for fates, lost, has_stopped, count in known:
            masks = fates.domains(level)
            living = {
                domains.of[universe.index[one.broker]]: domain_at(one, level)
                for one in fates.placement.voters
                if one.broker not in lost
            }
            for domain, path in living.items():
                course = fates.of(masks[path]).course
                if not has_stopped and not course.acts_alone:
                    stops[domain] += count
                if fates.of(0).course.keeps_data and not course.keeps_data:
                    loses[domain] += count
        for domain, mask in enumerate(domains.masks):
            if not domains.values[domain] or mask in seen:
                continue
            seen.add(mask)
            if stops[domain] or loses[domain]:
                name, brokers = domains.names[domain], universe.brokers(mask)
                found.append(Exposure(level, name, brokers, stops[domain], loses[domain]))
    return tuple(found)
