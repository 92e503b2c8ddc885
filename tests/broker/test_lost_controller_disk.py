"""A voter of the controller returns without its disk under the same id, and votes for nothing old.

Source: `replication/host/bootstrap.py`; reliability reference 1b."""

from collections.abc import Iterator

import pytest
from tests.broker.cluster_world import VOTERS, ClusterWorld
from tests.broker.test_broker_in_a_cluster import fetch, produce
from tests.broker.test_lost_disk import lose_disk


@pytest.fixture
def cluster() -> Iterator[ClusterWorld]:
    """Three brokers, all of them voters of the controller, that have joined."""
    world = ClusterWorld(VOTERS)
    world.until_started()
    yield world
    world.close()


@pytest.mark.parametrize("broker", VOTERS)
def test_a_voter_that_lost_its_disk_comes_back_and_takes_part_again(
    cluster: ClusterWorld, broker: int
) -> None:
    cluster.create_topic("t", replicas=3)
    for number in range(5):
        assert produce(cluster, "t", b"%d" % number).error_code == 0
    lose_disk(cluster, broker)
    cluster.advance(3_000)
    cluster.hosts[broker].start()
    cluster.until_started(broker)
    cluster.until(lambda: not cluster.controller(broker).raft.has_lost_state)
    cluster.until(lambda: cluster.replicas_of("t")[broker].high_watermark == 5)
    assert fetch(cluster, "t", at=broker) == [b"0", b"1", b"2", b"3", b"4"]


def test_it_does_not_help_to_elect_a_controller_that_lacks_what_was_decided(
    cluster: ClusterWorld,
) -> None:
    cluster.hosts[3].kill()
    cluster.advance(3_000)
    cluster.create_topic("decided", replicas=2)
    cluster.hosts[1].kill()
    lose_disk(cluster, 2)
    for broker in (2, 3):
        cluster.hosts[broker].start()
    cluster.advance(15_000)
    assert not any(cluster.controller(broker).is_leader for broker in (2, 3))
    cluster.hosts[1].start()
    cluster.until_started(1, 2, 3)
    assert "decided" in cluster.broker(3).services.cluster.topics
