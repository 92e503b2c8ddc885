"""Zones and regions: which brokers they contain, and their names.

Why:    brokers that fail together are judged together; and zone "a" of two regions is two zones.
How:    A domain is its path, (region,) or (region, zone); the region is empty if not given. A zone
        appears under its own name, or as region/zone if that name is ambiguous.
Owns:   nothing.
Source: design section 8; `placement.topology.universe` for the paths."""

from collections.abc import Iterable, Mapping

from strandline.model.cluster import Domain, Labels, Outage
from strandline.model.ids import BrokerId

_REGION_DEPTH = 1


def domains_of(labels: Labels) -> tuple[Domain, ...]:
    """The domains of a broker, the narrowest first; none if its labels name none."""
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
    """Whether the domain is a region, not a zone."""
    return len(domain) == _REGION_DEPTH


def region_of(domain: Domain) -> Domain:
    """The region that the domain is, or is in."""
    return domain[:_REGION_DEPTH]


def widening(domain: Domain) -> tuple[Domain, ...]:
    """The domain, and the region that contains it."""
    return (domain,) if is_region(domain) else (domain, region_of(domain))


def ruled_by(domain: Domain, outages: Mapping[Domain, Outage]) -> Domain | None:
    """The domain with the ruling that applies: itself, or else its region; None without a
    ruling."""
    ruled = (one for one in widening(domain) if one in outages and outages[one].ruling)
    return next(ruled, None)


def short_name(domain: Domain, known: Iterable[Domain]) -> str:
    """The name of the domain: the short one, unless it also fits another of the `known`."""
    same = [one for one in known if one[-1] == domain[-1]]
    return domain[-1] if len(same) <= 1 or is_region(domain) else "/".join(domain)


def full_name(domain: Domain, known: Iterable[Domain]) -> str:
    """The same, with its level."""
    return f"{'region' if is_region(domain) else 'zone'} {short_name(domain, known)}"


def vantage_of(broker: BrokerId, labels: Labels) -> Domain:
    """The zone from which a broker hears others; without a zone its region, without a region the
    broker itself."""
    found = domains_of(labels)
    return found[0] if found else ("", "", f"broker {broker}")


def vantage_name(vantage: Domain, known: Iterable[Domain]) -> str:
    """A vantage in words."""
    return vantage[-1] if len(vantage) > len(("region", "zone")) else full_name(vantage, known)
