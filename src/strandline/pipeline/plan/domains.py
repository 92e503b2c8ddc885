"""What can be lost at once: the regions, zones, ..., and brokers of a cluster, each with its rate.

Why:    a loss takes a whole domain; the fate of a partition depends on which of its brokers that
        are.
How:    brokers are bits of `placement.topology.universe`; domains of a level are its masks. A
        broker without a label of a level is lost with no domain of that level.
Owns:   nothing; made once for a plan."""

from collections.abc import Mapping
from dataclasses import dataclass

from strandline.pipeline.plan.assumptions import LossRate
from strandline.placement.topology.universe import Universe


@dataclass(frozen=True, slots=True)
class LossDomain:
    """One domain that can be lost. `mask`: its brokers, as bits of the universe."""

    level: str
    name: str
    mask: int
    rate: LossRate


def loss_domains(universe: Universe, rates: Mapping[str, LossRate]) -> tuple[LossDomain, ...]:
    """Every domain of the levels in `rates`, in that order; by number it is part of a seed's
    meaning, so the order is fixed."""
    found = []
    for level, rate in rates.items():
        domains = universe.domains(level)
        for mask, name, value in zip(domains.masks, domains.names, domains.values, strict=True):
            if value:
                found.append(LossDomain(level, name or value, mask, rate))
    assert all(one.mask for one in found)
    return tuple(found)


def losses_a_year(domains: tuple[LossDomain, ...]) -> float:
    """The mean number of losses in a year, over all domains."""
    return sum(one.rate.per_year for one in domains)
