"""A client is told the addresses of the listener that it came to (decision 0069; Kafka's
MetadataCache)."""

from dataclasses import replace
from types import SimpleNamespace

import msgspec
import pytest
from tests.broker.broker_world import OTHER, SELF, BrokerWorld, LeaderEntry

from strandline.model.cluster import Address, Endpoint, NearAddress
from strandline.model.ids import CONTROLLER_GROUP, NO_BROKER, BrokerId
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from strandline.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from strandline.protocol.messages.metadata import MetadataRequest, MetadataResponse
from strandline.security.session import Session


@pytest.fixture
def world() -> BrokerWorld:
    """Broker 1 has listeners PLAINTEXT and PUBLIC; broker 2 registered none by name."""
    world = BrokerWorld()
    brokers = world.cluster.brokers
    brokers[SELF] = replace(
        brokers[SELF],
        endpoints=(
            Endpoint("PLAINTEXT", brokers[SELF].kafka, "PLAINTEXT"),
            Endpoint("PUBLIC", Address("public-1", 443), "SSL"),
        ),
    )
    world.add_topic("here")
    world.add_remote_topic("there")
    world.replication.leaders[CONTROLLER_GROUP] = LeaderEntry(CONTROLLER_GROUP, 9, SELF)
    return world


def come_to(world: BrokerWorld, listener: str) -> None:
    world.session = Session(listener=listener)


def metadata(world: BrokerWorld, version: int = 12) -> MetadataResponse:
    return world.ask(MetadataRequest(topics=None), MetadataResponse, version)


def addresses(world: BrokerWorld) -> list[tuple[int, str, int]]:
    told = [(one.node_id, one.host, one.port) for one in metadata(world).brokers]
    described = world.ask(DescribeClusterRequest(), DescribeClusterResponse, 1)
    assert [(one.broker_id, one.host, one.port) for one in described.brokers] == told
    return told


def test_a_client_learns_the_addresses_of_its_listener(world: BrokerWorld) -> None:
    assert addresses(world) == [(SELF, "host-1", 9_001), (OTHER, "host-2", 9_002)]
    come_to(world, "PUBLIC")
    assert addresses(world) == [(SELF, "public-1", 443)]
    come_to(world, "OTHER")
    assert addresses(world) == []


@pytest.mark.parametrize(
    ("version", "code"), [(5, Error.LEADER_NOT_AVAILABLE), (6, Error.LISTENER_NOT_FOUND)]
)
def test_a_leader_without_the_listener_is_not_named(
    world: BrokerWorld, version: int, code: Error
) -> None:
    come_to(world, "PUBLIC")
    here, there = metadata(world, version).topics
    assert (here.partitions[0].leader_id, here.partitions[0].error_code) == (SELF, Error.NONE)
    assert (there.partitions[0].leader_id, there.partitions[0].error_code) == (NO_BROKER, code)
    assert there.partitions[0].replica_nodes == [SELF, OTHER]


@pytest.mark.parametrize(
    ("leader", "listener", "answer"),
    [
        (SELF, "PLAINTEXT", (Error.NONE, "host-1", 9_001)),
        (SELF, "PUBLIC", (Error.NONE, "public-1", 443)),
        (OTHER, "PLAINTEXT", (Error.NONE, "host-2", 9_002)),
        (OTHER, "PUBLIC", (Error.COORDINATOR_NOT_AVAILABLE, "", -1)),
    ],
)
def test_a_coordinator_is_named_at_the_listener(
    world: BrokerWorld, leader: BrokerId, listener: str, answer: tuple[int, str, int]
) -> None:
    partition = world.cluster.topics["here"].partitions[0]
    world.replication.replicas[partition.group].follow(leader, epoch=2)
    world.replication.leaders[partition.group] = LeaderEntry(partition.group, 2, leader)
    world.services.coordinator = SimpleNamespace(  # type: ignore[assignment]
        partition_of=lambda key: partition
    )
    come_to(world, listener)
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    (one,) = world.ask(request, FindCoordinatorResponse, 4).coordinators
    assert (one.error_code, one.host, one.port) == answer


# ---- by the client's network ---------------------------------------------------------------------


@pytest.fixture
def near(world: BrokerWorld) -> BrokerWorld:
    """Broker 2 is told at another address to clients of two networks, one within the other."""
    there = Endpoint(
        "PLAINTEXT",
        Address("host-2", 9_002),
        "PLAINTEXT",
        (
            NearAddress("10.0.0.0/8", Address("10.0.0.2", 9_202)),
            NearAddress("10.1.0.0/16", Address("10.1.0.2", 9_302)),
            NearAddress("2001:db8::/32", Address("2001:db8::2", 9_402)),
        ),
    )
    world.cluster.brokers[OTHER] = replace(world.cluster.brokers[OTHER], endpoints=(there,))
    return world


NEAR = [
    ("192.0.2.7", ("host-2", 9_002)),
    ("10.9.9.9", ("10.0.0.2", 9_202)),
    ("10.1.2.3", ("10.1.0.2", 9_302)),
    ("::ffff:10.1.2.3", ("10.1.0.2", 9_302)),
    ("2001:db8::7", ("2001:db8::2", 9_402)),
    ("", ("host-2", 9_002)),
]


@pytest.mark.parametrize(("host", "expected"), NEAR)
def test_a_client_learns_the_addresses_for_its_network(
    near: BrokerWorld, host: str, expected: tuple[str, int]
) -> None:
    near.session = Session(listener="PLAINTEXT", host=host)
    assert addresses(near) == [(SELF, "host-1", 9_001), (OTHER, *expected)]


def test_a_coordinator_is_named_by_the_clients_network(near: BrokerWorld) -> None:
    partition = near.cluster.topics["here"].partitions[0]
    near.replication.replicas[partition.group].follow(OTHER, epoch=2)
    near.replication.leaders[partition.group] = LeaderEntry(partition.group, 2, OTHER)
    near.services.coordinator = SimpleNamespace(  # type: ignore[assignment]
        partition_of=lambda key: partition
    )
    near.session = Session(listener="PLAINTEXT", host="10.1.2.3")
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    (one,) = near.ask(request, FindCoordinatorResponse, 4).coordinators
    assert (one.error_code, one.host, one.port) == (Error.NONE, "10.1.0.2", 9_302)


def test_an_older_release_reads_a_listener_without_its_networks(near: BrokerWorld) -> None:
    """What it does not know it leaves out: it tells every client the one address."""

    class OldEndpoint(msgspec.Struct):
        name: str
        address: Address
        protocol: str

    (endpoint,) = near.cluster.brokers[OTHER].endpoints
    for encode, decode in ((msgspec.json.encode, msgspec.json.decode),
                           (msgspec.msgpack.encode, msgspec.msgpack.decode)):  # fmt: skip
        old = decode(encode(endpoint), type=OldEndpoint)
        assert (old.name, old.address) == ("PLAINTEXT", Address("host-2", 9_002))
        assert decode(encode(old), type=Endpoint) == Endpoint(
            "PLAINTEXT", Address("host-2", 9_002), "PLAINTEXT"
        )
        assert decode(encode(endpoint), type=Endpoint) == endpoint
