"""Five brokers in three regions, and a host for the clients of each region.

Why:    a region that is cut off takes its clients with it: they go on asking a leader without a
        quorum, which must not answer them.
How:    the addresses are from the range for tests of networks (RFC 2544); no host has a route to
        any other network. With `--cores N` each of these hosts is a machine with N brokers:

            machine 3, without --cores    broker 3         ports 23092, 23192
            machine 3, with --cores 2     broker 30, 31    ports 23092 and 23093, 23192 and 23193"""

from dataclasses import dataclass

KAFKA_PORT, RPC_PORT = 23_092, 23_192
PREFIX_BITS = 15
IDS_PER_MACHINE = 10


class ChaosError(Exception):
    """Something that the run needs did not work; one line."""


@dataclass(frozen=True, slots=True)
class Host:
    """One machine, as far as the network goes. `broker`: its id, or the machine's number with
    `--cores`; 0 on a host of clients."""

    name: str
    region: str
    address: str
    broker: int = 0


BROKERS = (
    Host("east-1", "east", "198.18.1.1", 1),
    Host("east-2", "east", "198.18.1.2", 2),
    Host("west-1", "west", "198.18.2.1", 3),
    Host("west-2", "west", "198.18.2.2", 4),
    Host("south-1", "south", "198.18.3.1", 5),
)
CLIENTS = (
    Host("east-clients", "east", "198.18.1.100"),
    Host("west-clients", "west", "198.18.2.100"),
    Host("south-clients", "south", "198.18.3.100"),
)
HOSTS = (*BROKERS, *CLIENTS)
REGIONS = ("east", "west", "south")
BROKER_IDS = tuple(host.broker for host in BROKERS)
BOOTSTRAP = ",".join(f"{host.address}:{KAFKA_PORT}" for host in BROKERS)
INSIDE_ROUND_TRIP_MS = 1


@dataclass(frozen=True, slots=True)
class Profile:
    """What lies between the regions. `round_trip_ms`: {two regions in order of names: how long};
    `jitter_ms`: how much that varies in all; `loss`: the share of packets that is lost."""

    name: str
    round_trip_ms: dict[tuple[str, str], float]
    jitter_ms: float = 0.0
    loss: float = 0.0


CALM = Profile("calm", {("east", "west"): 30, ("east", "south"): 80, ("south", "west"): 90})
ATLANTIC = Profile(
    "atl",
    {("east", "west"): 64, ("east", "south"): 70, ("south", "west"): 118},
    jitter_ms=3,
    loss=0.001,
)
"""Virginia, Oregon and Ireland; jitter and loss between regions only."""


Link = tuple[str, str]
"""One direction: (host that sends, host that is sent to)."""


def links_between(senders: tuple[Host, ...], targets: tuple[Host, ...]) -> tuple[Link, ...]:
    """Every link from one of the hosts to another one."""
    return tuple((one.name, other.name) for one in senders for other in targets if one != other)


def one_way_ms(one: Host, other: Host, profile: Profile = CALM) -> float:
    """How long a packet takes."""
    if one.region == other.region:
        return INSIDE_ROUND_TRIP_MS / 2
    low, high = sorted((one.region, other.region))
    return profile.round_trip_ms[low, high] / 2


def hosts_in(region: str) -> tuple[Host, ...]:
    """All hosts of a region, clients' included."""
    return tuple(host for host in HOSTS if host.region == region)


def broker_host(number: int) -> Host:
    """Where a broker lives."""
    return next(host for host in BROKERS if host.broker == machine_of(number))


def machine_of(broker: int) -> int:
    """The number of a broker's machine; the broker's own without `--cores`."""
    return broker // IDS_PER_MACHINE or broker


def brokers_of(machine: int, cores: int) -> tuple[int, ...]:
    """The brokers of a machine; `cores`: 0 without `--cores`."""
    first = machine * IDS_PER_MACHINE
    return tuple(range(first, first + cores)) if cores else (machine,)


def all_brokers(cores: int) -> tuple[int, ...]:
    """The brokers of all machines."""
    return tuple(one for machine in BROKER_IDS for one in brokers_of(machine, cores))
