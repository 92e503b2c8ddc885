"""A client's address: its one spelling, and which of some networks it is in.

Why:    clients in a broker's own network, or behind a translation of addresses, reach it at another
        address than all others do, and come to the same listener. And rules, quotas and bounds
        compare addresses: another spelling of the same one must not get around them.
How:    Of nested networks the narrowest counts. An IPv4 client that came over IPv6
        (::ffff:10.1.2.3) counts as IPv4.
Owns:   the networks and clients that were read last.
Source: decision 0069, "Listeners"."""

import ipaddress
from collections.abc import Sequence
from functools import lru_cache

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
NETWORKS_KEPT_MAX = 4_096
CLIENTS_KEPT_MAX = 4_096


def narrowest(networks: Sequence[str], host: str) -> int | None:
    """The place of the narrowest network that the client is in; None if it is in none. `networks`:
    as 10.1.0.0/16 or 2001:db8::/32."""
    client = _client(host)
    if client is None:
        return None
    fitting = [
        (network.prefixlen, place)
        for place, network in enumerate(map(_network, networks))
        if client in network
    ]
    return max(fitting)[1] if fitting else None


@lru_cache(CLIENTS_KEPT_MAX)
def canonical_host(host: str) -> str:
    """An address in its one spelling, an IPv4 client that came over IPv6 as IPv4; any other text as
    it is."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return str(_unmapped(address))


@lru_cache(NETWORKS_KEPT_MAX)
def _network(text: str) -> Network:
    return ipaddress.ip_network(text)


@lru_cache(CLIENTS_KEPT_MAX)
def _client(host: str) -> IpAddress | None:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return _unmapped(address)


def _unmapped(address: IpAddress) -> IpAddress:
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
