"""Counts the seats of a scope by the domains of a label; most evaluators begin with this."""

from strandline.placement.constraints.contract import Seats
from strandline.placement.topology.universe import Domains


def held_by_domain(seats: Seats, scope: int, domains: Domains) -> dict[int, int]:
    """{domain: seats of the scope in it}, of the domains that have any."""
    of = domains.of
    held: dict[int, int] = {}
    for bit, group in seats:
        if scope >> group & 1:
            domain = of[bit]
            held[domain] = held.get(domain, 0) + 1
    return held
