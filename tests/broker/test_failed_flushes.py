"""A failed flush fails the replica: it is never tried again, and no acknowledgement relies on it.

Source: ATC'20, "Can Applications Recover from fsync Failures?"; design section 4."""

from tests.broker.cluster_world import ClusterWorld
from tests.broker.test_broker_in_a_cluster import fetch, produce

from strandline.protocol.errors import Error
from strandline.storage.layout import FLUSHED, LOG

VALUES = [b"%d" % number for number in range(5)]


def fail_next_flush(cluster: ClusterWorld, broker: int, suffix: str) -> None:
    faults = cluster.hosts[broker].disk.faults
    faults.fail_flush_of = suffix
    faults.fail_flush_count = 1


def failed_count(cluster: ClusterWorld, broker: int) -> int:
    return cluster.hosts[broker].disk.counters.failed_flush_count


def test_a_leader_whose_flush_fails_acknowledges_nothing_and_another_leads(
    cluster: ClusterWorld,
) -> None:
    """Only with the leader's own copy would the record be on a majority."""
    cluster.create_topic("t")
    away = next(broker for broker in (1, 2, 3) if broker != cluster.leader_of("t"))
    cluster.hosts[away].kill()
    cluster.advance(3_000)
    for value in VALUES:
        assert produce(cluster, "t", value).error_code == 0
    old = cluster.leader_of("t")
    replica = cluster.replicas_of("t")[old]
    fail_next_flush(cluster, old, f"{replica.log.directory}/{0:020d}-0-0{LOG}")
    refused = (Error.KAFKA_STORAGE_ERROR, Error.NOT_LEADER_OR_FOLLOWER)
    assert produce(cluster, "t", b"refused").error_code in refused
    assert failed_count(cluster, old) == 1
    assert replica.failed is not None
    last_index = replica.log.last_index
    cluster.hosts[away].start()
    cluster.until(lambda: cluster.leader_of("t") not in (0, old))
    assert produce(cluster, "t", b"more").error_code == 0
    cluster.advance(20_000)
    found = fetch(cluster, "t")
    assert found[:5] == VALUES
    assert found[-1] == b"more"
    assert replica.log.last_index == last_index, "it takes no part any more"
    assert replica.log.flushed_index < last_index, "nor is the flush tried again"


def test_a_follower_whose_mark_cannot_be_flushed_is_counted_no_more(
    cluster: ClusterWorld,
) -> None:
    """Not the data: what says of it that it is durable."""
    cluster.create_topic("t")
    assert produce(cluster, "t", *VALUES).error_code == 0
    leader = cluster.leader_of("t")
    other, away = (broker for broker in (1, 2, 3) if broker != leader)
    replica = cluster.replicas_of("t")[other]
    fail_next_flush(cluster, other, f"{replica.log.directory}/{0:020d}-0-0{FLUSHED}")
    cluster.until(lambda: replica.log.failed)
    assert failed_count(cluster, other) == 1
    assert produce(cluster, "t", b"by the two others").error_code == 0
    cluster.until(lambda: replica.failed is not None)
    cluster.hosts[away].kill()
    assert produce(cluster, "t", b"by one").error_code != 0
    for broker in (other, away):
        cluster.hosts[broker].kill()
        cluster.hosts[broker].start()
    cluster.until(lambda: cluster.leader_of("t") != 0)
    assert fetch(cluster, "t")[: len(VALUES) + 1] == [*VALUES, b"by the two others"]
