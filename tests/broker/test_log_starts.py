"""After retention, core and disk agree on the entry where a log begins.

Source: design section 4 (markers take an index and no offset)."""

from dataclasses import replace

import pytest
from tests.broker.cluster_world import CLEAN_INTERVAL_MS, ClusterWorld
from tests.broker.test_broker_in_a_cluster import fetch, produce


def close_segments(world: ClusterWorld) -> None:
    """Whatever is appended next begins a segment, on every broker."""
    world.advance(1_000)
    for broker, replica in world.replicas_of("t").items():
        process = world.hosts[broker].process
        assert process is not None
        process.run_now(replica.log._roll)


@pytest.mark.parametrize("has_data", [True, False])
def test_a_log_may_begin_with_a_marker(cluster: ClusterWorld, has_data: bool) -> None:
    cluster.create_topic("t")
    assert produce(cluster, "t", b"first").error_code == 0
    close_segments(cluster)
    leader = cluster.leader_of("t")
    cluster.replicas_of("t")[leader].transfer_leadership(leader % 3 + 1)
    cluster.until(lambda: cluster.leader_of("t") not in (0, leader))
    if has_data:
        assert produce(cluster, "t", b"second").error_code == 0
    replicas = cluster.replicas_of("t")
    for replica in replicas.values():
        replica.log.config = replace(replica.log.config, retention_bytes=0)
    cluster.advance(2 * CLEAN_INTERVAL_MS)
    for replica in replicas.values():
        assert replica.log.start_offset == 1
        assert replica.raft.log.first_index == replica.log.start_index
        assert replica.raft.log.previous_epoch == replica.log.previous_epoch
        assert replica.raft.log.epochs == replica.log.epochs
    if has_data:
        assert fetch(cluster, "t", offset=1) == [b"second"]
    else:
        assert produce(cluster, "t", b"second").base_offset == 1


def test_a_topic_may_say_how_many_records_it_keeps(cluster: ClusterWorld) -> None:
    cluster.create_topic("t", configs=(("strandline.retention.records", "4"),))
    for _ in range(3):
        for _ in range(4):
            assert produce(cluster, "t", b"one").error_code == 0
        cluster.advance(2 * CLEAN_INTERVAL_MS)
    for replica in cluster.replicas_of("t").values():
        assert (replica.log.start_offset, replica.log.end_offset) == (8, 12)
        assert replica.raft.log.first_index == replica.log.start_index
