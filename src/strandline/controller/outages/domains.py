"""Zones and regions: which brokers they contain, and what people call them.

Why:    what fails together is judged together; and zone "a" of two regions is two zones.
How:    A domain is its path, (region,) or (region, zone); the region is empty if not given. People
        call a zone by its own name, or by region/zone if that is ambiguous.
Owns:   nothing.
Source: design section 8; `placement.topology.universe` for the paths."""

from collections.abc import Iterable, Mapping

from strandline.model.cluster import Domain, Labels, Outage
from strandline.model.ids import BrokerId

_REGION_DEPTH = 1


def domains_of(labels: Labels) -> tuple[Domain, ...]:
    """The domains of a broker, the narrowest first; none where its labels name none."""
    found: list[Domain] = []
    if labels.zone:
        found.append((labels.region, labels.zone))
    if labels.region:
        found.append((labels.region,))
    return tuple(found)


def members(brokers: Mapping[BrokerId, Labels]) -> dict[Domain, frozenset[BrokerId]]:
    """{domain: the brokers in it}, by path."""
    found: dict[Domain, set[BrokerId]] = {}
    for broker, labels in brokers.items():
        for domain in domains_of(labels):
            found.setdefault(domain, set()).add(broker)
    return {domain: frozenset(found[domain]) for domain in sorted(found)}


def is_region(domain: Domain) -> bool:
    """Whether it is a region; else it is a zone."""
    return len(domain) == _REGION_DEPTH


def region_of(domain: Domain) -> Domain:
    """The region that it is, or is in."""
    return domain[:_REGION_DEPTH]


def widening(domain: Domain) -> tuple[Domain, ...]:
    """It, and what it is in."""
    return (domain,) if is_region(domain) else (domain, region_of(domain))


def ruled_by(domain: Domain, outages: Mapping[Domain, Outage]) -> Domain | None:
    """Whose ruling counts for it: its own, or else its region's; None where there is none."""
    ruled = (one for one in widening(domain) if one in outages and outages[one].ruling)
    return next(ruled, None)


def short_name(domain: Domain, known: Iterable[Domain]) -> str:
    """How a person names it: shortly, where no other of the `known` is meant by that."""
    same = [one for one in known if one[-1] == domain[-1]]
    return domain[-1] if len(same) <= 1 or is_region(domain) else "/".join(domain)


def full_name(domain: Domain, known: Iterable[Domain]) -> str:
    """The same, with its level."""
    return f"{'region' if is_region(domain) else 'zone'} {short_name(domain, known)}"


def vantage_of(broker: BrokerId, labels: Labels) -> Domain:
    """The zone from which a broker looks at others; the region, or itself, where that is all that
    is known."""
    found = domains_of(labels)
    return found[0] if found else ("", "", f"broker {broker}")


def vantage_name(vantage: Domain, known: Iterable[Domain]) -> str:
    """A vantage in words."""
    return vantage[-1] if len(vantage) > len(("region", "zone")) else full_name(vantage, known)
