"""`write.caching`, `flush.ms` and `flush.messages`: which writes are answered before a flush, and
for how long they stay unflushed.

Source: Redpanda RFC 20220119 (relaxed consistency); Kafka's `flush.ms` and `flush.messages`."""

import pytest
from tests.broker.cluster_world import ClusterWorld
from tests.broker.test_broker_in_a_cluster import fetch, produce

from strandline.protocol.errors import Error
from strandline.replication.replica.replica import Replica
from strandline.simulation.world.scheduler import US_PER_MS

SLOW_FACTOR = 1_000_000
"""Flushes take as long as the simulated disk lets them: seconds."""
CACHING = ("write.caching", "true")


def slow_down(cluster: ClusterWorld) -> None:
    for host in cluster.hosts.values():
        host.disk.faults.slow_factor = SLOW_FACTOR


def unflushed(replica: Replica) -> int:
    return replica.log.last_index - replica.log.flushed_index


def test_all_is_answered_once_a_quorum_has_written_and_before_it_has_flushed(
    cluster: ClusterWorld,
) -> None:
    cluster.create_topic("cached", configs=(CACHING,))
    cluster.create_topic("safe")
    cluster.advance(1_000)
    slow_down(cluster)
    began_us = cluster.scheduler.now_us
    assert produce(cluster, "cached", b"one").error_code == 0
    cached_us = cluster.scheduler.now_us - began_us
    replicas = cluster.replicas_of("cached").values()
    assert sum(unflushed(replica) > 0 for replica in replicas) >= 2
    assert fetch(cluster, "cached") == [b"one"]
    began_us = cluster.scheduler.now_us
    assert produce(cluster, "safe", b"one").error_code == 0
    assert cluster.scheduler.now_us - began_us > 10 * cached_us
    assert cached_us < 100 * US_PER_MS


def test_without_a_quorum_that_has_written_nothing_is_answered(cluster: ClusterWorld) -> None:
    cluster.create_topic("t", configs=(CACHING,))
    leader = cluster.leader_of("t")
    for broker in cluster.hosts:
        if broker != leader:
            cluster.hosts[broker].kill()
    answer = produce(cluster, "t", b"one")
    assert answer.error_code == Error.NOT_LEADER_OR_FOLLOWER


def test_what_was_answered_survives_kills_of_all_brokers_before_any_flush(
    cluster: ClusterWorld,
) -> None:
    cluster.create_topic("t", configs=(CACHING, ("flush.ms", "60000")))
    cluster.advance(1_000)
    assert produce(cluster, "t", b"one").error_code == 0
    leader = cluster.leader_of("t")
    assert all(unflushed(replica) for replica in cluster.replicas_of("t").values())
    for host in cluster.hosts.values():
        host.kill()
    others = [broker for broker in cluster.hosts if broker != leader]
    for broker in others:
        cluster.hosts[broker].start()
    cluster.until_started(*others)
    cluster.until(lambda: cluster.leader_of("t") != 0)
    assert fetch(cluster, "t") == [b"one"]


@pytest.mark.parametrize("acks", [-1, 1])
def test_nothing_stays_unflushed_for_longer_than_asked_for(
    cluster: ClusterWorld, acks: int
) -> None:
    cluster.create_topic("t", configs=(CACHING, ("flush.ms", "5000")))
    cluster.advance(6_000)
    assert produce(cluster, "t", b"one", acks=acks).error_code == 0
    cluster.advance(4_000)
    assert all(unflushed(replica) == 1 for replica in cluster.replicas_of("t").values())
    cluster.advance(1_500)
    assert not any(unflushed(replica) for replica in cluster.replicas_of("t").values())


def test_no_more_stay_unflushed_than_asked_for(cluster: ClusterWorld) -> None:
    configs = (CACHING, ("flush.ms", "60000"), ("flush.messages", "4"))
    cluster.create_topic("t", configs=configs)
    cluster.advance(1_000)
    for count in range(1, 4):
        assert produce(cluster, "t", b"one").error_code == 0
        cluster.advance(500)
        assert all(unflushed(replica) == count for replica in cluster.replicas_of("t").values())
    assert produce(cluster, "t", b"one").error_code == 0
    cluster.advance(500)
    assert not any(unflushed(replica) for replica in cluster.replicas_of("t").values())


def test_a_minute_is_the_longest(cluster: ClusterWorld) -> None:
    cluster.create_topic("t", configs=(CACHING, ("flush.ms", "9223372036854775807")))
    cluster.advance(61_000)
    assert produce(cluster, "t", b"one").error_code == 0
    cluster.advance(59_000)
    assert all(unflushed(replica) for replica in cluster.replicas_of("t").values())
    cluster.advance(2_000)
    assert not any(unflushed(replica) for replica in cluster.replicas_of("t").values())
