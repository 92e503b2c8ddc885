"""Maps clients' addresses to regions: a table of networks, each with its region.

Why:    Kafka's Produce does not say where a producer is. The address of its connection does, if
        each region has its own networks.
How:    `region=network`, an address with the length of its prefix. Of nested networks the narrowest
        counts. An IPv4 address that came over IPv6 (::ffff:10.1.2.3) is the IPv4 address.
Owns:   nothing.
Source: decision 0014."""

import ipaddress
from collections.abc import Iterable

from strandline.config.addresses import check_label
from strandline.config.keys import Value

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
UNKNOWN = ""
"""The region of an address that is in no network."""


def parse_client_network(text: str) -> tuple[str, Network]:
    """Read `region=network`; raises ValueError with the reason."""
    region, sign, network = (part.strip() for part in text.partition("="))
    if not region or not sign or not network:
        raise ValueError(f"must look like region=network, as in east=10.1.0.0/16, not {text!r}")
    reason = check_label(region)
    if reason is not None:
        raise ValueError(f"names a region that {reason}")
    return region, parse_network(network)


def parse_network(network: str) -> Network:
    """Read a network; raises ValueError with the reason."""
    try:
        return ipaddress.ip_network(network)
    except ValueError:
        pass
    try:
        meant = ipaddress.ip_network(network, strict=False)
    except ValueError:
        raise ValueError(
            f"must give a network as 10.1.0.0/16 or 2001:db8::/32, not {network!r}"
        ) from None
    raise ValueError(f"gives {network}, an address within a network: write {meant}")


def check_client_networks(value: Value) -> str | None:
    """Whether every part is a network with its region, no network twice."""
    assert isinstance(value, tuple)
    try:
        networks = [parse_client_network(part)[1] for part in value]
    except ValueError as error:
        return str(error)
    twice = next((one for one in networks if networks.count(one) > 1), None)
    return None if twice is None else f"gives the network {twice} twice"


class ClientNetworks:
    """The table, read from texts that were checked before."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        parsed = [parse_client_network(text) for text in texts]
        # The narrowest first.
        self._networks = sorted(parsed, key=lambda one: -one[1].prefixlen)

    def region_of(self, host: str) -> str:
        """The region of a client's address, as `socket.accept` tells it; or UNKNOWN."""
        try:
            address = ipaddress.ip_address(host.partition("%")[0])
        except ValueError:
            return UNKNOWN
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return next((region for region, one in self._networks if address in one), UNKNOWN)
