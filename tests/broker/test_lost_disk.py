"""A broker whose disk is gone comes back under its id; a second broker of an id is refused.

Source: reliability reference 1b (a wiped follower that votes); `ControllerState.has_lost`."""

from collections.abc import Iterator

import pytest
from tests.broker.cluster_world import ClusterWorld, joined
from tests.broker.test_broker_in_a_cluster import fetch, produce

from strandline.controller.commands import Refused, RegisterBroker
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.simulation.directory_tree import DirectoryTree

NOT_A_VOTER = 4


@pytest.fixture
def cluster() -> Iterator[ClusterWorld]:
    """Four brokers that have joined."""
    with joined(ClusterWorld()) as world:
        yield world


def lose_disk(world: ClusterWorld, broker: int) -> None:
    """Kill a broker, and give it an empty disk."""
    world.hosts[broker].kill()
    world.hosts[broker].disk.tree = DirectoryTree()
    world.directory_ids[broker] = f"new-directory-{broker}"
    world.cluster_ids.pop(broker, None)


def test_a_broker_that_lost_its_disk_comes_back_and_catches_up(cluster: ClusterWorld) -> None:
    cluster.create_topic("t", replicas=4)
    for number in range(5):
        assert produce(cluster, "t", b"%d" % number).error_code == 0
    lose_disk(cluster, NOT_A_VOTER)
    cluster.advance(2_000)
    cluster.hosts[NOT_A_VOTER].start()
    cluster.until_started(NOT_A_VOTER)
    cluster.until(lambda: cluster.replicas_of("t")[NOT_A_VOTER].high_watermark == 5)
    assert fetch(cluster, "t", at=NOT_A_VOTER) == [b"0", b"1", b"2", b"3", b"4"]


def test_it_may_come_back_before_the_others_have_missed_it(cluster: ClusterWorld) -> None:
    cluster.create_topic("t", replicas=4)
    lose_disk(cluster, NOT_A_VOTER)
    cluster.hosts[NOT_A_VOTER].start()
    cluster.until_started(NOT_A_VOTER)


@pytest.mark.parametrize("broker", [1, 2, 3, NOT_A_VOTER])
def test_a_second_broker_of_an_id_is_refused(cluster: ClusterWorld, broker: int) -> None:
    first = cluster.broker(broker)
    known = cluster.broker(1).services.cluster.brokers[BrokerId(broker)]
    answer = cluster.submit(
        RegisterBroker(
            broker=known.id,
            incarnation="another",
            directory_id="another",
            rpc=known.rpc,
            kafka=known.kafka,
        )
    )
    assert isinstance(answer, Refused)
    assert answer.error_code == Error.DUPLICATE_BROKER_REGISTRATION
    assert "is taken by a broker that is alive" in answer.message
    assert cluster.broker(broker) is first
