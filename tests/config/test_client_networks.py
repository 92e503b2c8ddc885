"""Where clients are, by their addresses: what is read, what is refused, what is found."""

import pytest

from strandline.config.client_networks import UNKNOWN, ClientNetworks
from strandline.config.cluster import ClusterConfig, validate_cluster_config

TABLE = (
    "east=10.1.0.0/16",
    "west=10.2.0.0/16",
    "edge=10.1.7.0/24",
    "north=2001:db8::/32",
    "south=192.0.2.7",
)


@pytest.mark.parametrize(
    ("address", "region"),
    [
        ("10.1.2.3", "east"),
        ("10.2.255.255", "west"),
        ("10.1.7.9", "edge"),  # Of networks within each other the narrowest.
        ("10.3.0.1", UNKNOWN),
        ("2001:db8:5::1", "north"),
        ("2001:db9::1", UNKNOWN),
        ("::ffff:10.2.0.1", "west"),  # IPv4 that came over IPv6.
        ("fe80::1%eth0", UNKNOWN),
        ("192.0.2.7", "south"),  # One address is a network, too.
        ("192.0.2.8", UNKNOWN),
        ("somewhere.example", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_an_address_is_in_the_narrowest_network_that_has_it(address: str, region: str) -> None:
    assert ClientNetworks(TABLE).region_of(address) == region
    assert ClientNetworks(tuple(reversed(TABLE))).region_of(address) == region


def test_without_a_table_nobody_is_anywhere() -> None:
    assert ClientNetworks().region_of("10.1.2.3") == UNKNOWN


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("10.1.0.0/16", "must look like region=network"),
        ("east=", "must look like region=network"),
        ("=10.1.0.0/16", "must look like region=network"),
        ("ea st=10.1.0.0/16", "names a region that must be"),
        ("east=10.1.0.0/33", "must give a network as"),
        ("east=here", "must give a network as"),
        ("east=10.1.2.3/16", "write 10.1.0.0/16"),
        ("east=10.1.0.0/16,west=10.1.0.0/16", "gives the network 10.1.0.0/16 twice"),
        ("east=10.1.0.0/16,west=10.1.0.0/255.255.0.0", "gives the network 10.1.0.0/16 twice"),
    ],
)
def test_what_is_no_table_is_refused_in_one_line(text: str, says: str) -> None:
    reason = validate_cluster_config("client.networks", text)
    assert reason is not None and reason.startswith("client.networks ")
    assert says in reason and "\n" not in reason


def test_a_table_is_read_from_the_cluster_s_configuration() -> None:
    text = " east=10.1.0.0/16 , west=10.2.0.0/16,"
    assert validate_cluster_config("client.networks", text) is None
    config = ClusterConfig.from_values({"client.networks": text})
    assert ClientNetworks(config.client_networks).region_of("10.2.0.1") == "west"
