"""Deleted records stay deleted: on every replica, after elections, kills and power failures.

Source: docs/decisions/0006-deleting-records.md; KIP-107."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.broker.cluster_world import CLEAN_INTERVAL_MS, ClusterWorld, three_brokers
from tests.broker.test_broker_in_a_cluster import fetch, latest, produce
from tests.broker.test_log_starts import close_segments

from strandline.protocol.errors import Error
from strandline.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from strandline.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from strandline.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from strandline.records.batch import read_header
from strandline.records.marker import build_deletion_marker
from strandline.replication.replica.replica import Replica

EARLIEST = -2
GREATEST_TIMESTAMP = -3
AWAY_MS = 3_000
"""Long enough for a broker to be counted as dead."""


@pytest.fixture
def cluster() -> Iterator[ClusterWorld]:
    """Three brokers, topic t with ten records."""
    with three_brokers() as world:
        world.create_topic("t")
        for at in range(5):
            assert produce(world, "t", b"%d" % (2 * at), b"%d" % (2 * at + 1)).error_code == 0
        yield world


def request(before: int, *, topic: str = "t", index: int = 0) -> DeleteRecordsRequest:
    asked = DeleteRecordsPartition(partition_index=index, offset=before)
    topics = [DeleteRecordsTopic(name=topic, partitions=[asked])]
    return DeleteRecordsRequest(topics=topics, timeout_ms=10_000)


def delete(
    world: ClusterWorld, before: int, *, at: int = 0, topic: str = "t", index: int = 0
) -> DeleteRecordsPartitionResult:
    asked = request(before, topic=topic, index=index)
    answer = world.ask(at or world.leader_of(topic), asked, DeleteRecordsResponse, 2)
    (result,) = answer.topics[0].partitions
    return result


def start(world: ClusterWorld, when: int = EARLIEST) -> int:
    asked = ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(timestamp=when)])
    answer = world.ask(
        world.leader_of("t"), ListOffsetsRequest(topics=[asked]), ListOffsetsResponse, 7
    )
    return answer.topics[0].partitions[0].offset


def fetched(world: ClusterWorld, offset: int, *, at: int = 0, topic: str = "t") -> PartitionData:
    asked = FetchPartition(fetch_offset=offset, partition_max_bytes=1_000_000)
    topics = [FetchTopic(topic=topic, partitions=[asked])]
    answer = world.ask(at or world.leader_of(topic), FetchRequest(topics=topics), FetchResponse, 12)
    return answer.responses[0].partitions[0]


def is_deleted_before(world: ClusterWorld, offset: int, *, at: int = 0) -> bool:
    """Whether a broker shows the partition as beginning there."""
    below, first = fetched(world, offset - 1, at=at), fetched(world, offset, at=at)
    return (
        below.error_code == Error.OFFSET_OUT_OF_RANGE
        and first.error_code == Error.NONE
        and first.log_start_offset == offset
    )


def kill_leader(world: ClusterWorld) -> int:
    """And wait for another one."""
    leader = world.leader_of("t")
    world.hosts[leader].kill()
    world.until(lambda: world.leader_of("t") not in (0, leader))
    return leader


def replicas(world: ClusterWorld) -> list[Replica]:
    return list(world.replicas_of("t").values())


def test_the_start_moves_within_a_segment_and_on_every_replica(cluster: ClusterWorld) -> None:
    result = delete(cluster, 5)
    assert (result.error_code, result.low_watermark) == (0, 5)
    assert start(cluster) == 5
    assert [replica.log.start_offset for replica in replicas(cluster)] == [0, 0, 0]
    cluster.until(lambda: all(one.log_start_offset == 5 for one in replicas(cluster)))
    assert all(is_deleted_before(cluster, 5, at=broker) for broker in (1, 2, 3))
    values = fetch(cluster, "t", offset=5)
    assert values[-5:] == [b"5", b"6", b"7", b"8", b"9"]
    assert latest(cluster, "t") == 10
    assert produce(cluster, "t", b"10").base_offset == 10


def test_minus_one_is_the_high_watermark_and_nothing_is_above_it(cluster: ClusterWorld) -> None:
    assert delete(cluster, 11).error_code == Error.OFFSET_OUT_OF_RANGE
    assert delete(cluster, -2).error_code == Error.OFFSET_OUT_OF_RANGE
    assert start(cluster) == 0
    result = delete(cluster, -1)
    assert (result.error_code, result.low_watermark) == (0, 10)
    assert fetched(cluster, 10).error_code == 0
    assert fetched(cluster, 9).error_code == Error.OFFSET_OUT_OF_RANGE


def test_the_start_never_goes_back(cluster: ClusterWorld) -> None:
    delete(cluster, 7)
    before = [replica.log.last_index for replica in replicas(cluster)]
    for offset in (0, 3, 7):
        result = delete(cluster, offset)
        assert (result.error_code, result.low_watermark) == (0, 7)
    assert [replica.log.last_index for replica in replicas(cluster)] == before, "nothing to write"


def test_what_only_the_leader_s_retention_has_taken_is_deleted_everywhere(
    cluster: ClusterWorld,
) -> None:
    """Each replica lets go for itself: the next leader may still have it."""
    close_segments(cluster)
    assert produce(cluster, "t", b"10").error_code == 0
    cluster.advance(1_000)
    replica = cluster.replicas_of("t")[cluster.leader_of("t")]
    process = cluster.hosts[replica.self_id].process
    assert process is not None
    process.run_now(lambda: replica.log.remove_segments_before(replica.log.last_index))
    before = replica.log.start_offset
    assert before == start(cluster) == 10
    result = delete(cluster, before)
    assert (result.error_code, result.low_watermark) == (0, before)
    kill_leader(cluster)
    cluster.until(lambda: start(cluster) == before)


def test_who_may_not_is_told_why(cluster: ClusterWorld) -> None:
    leader = cluster.leader_of("t")
    assert delete(cluster, 5, at=leader % 3 + 1).error_code == Error.NOT_LEADER_OR_FOLLOWER
    assert delete(cluster, 5, index=1).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert delete(cluster, 5, topic="none", at=1).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    cluster.create_topic("c", configs=(("cleanup.policy", "compact"),))
    assert produce(cluster, "c", b"1").error_code == 0
    assert delete(cluster, 1, topic="c").error_code == Error.POLICY_VIOLATION
    cluster.create_topic("both", configs=(("cleanup.policy", "compact,delete"),))
    assert produce(cluster, "both", b"1").error_code == 0
    assert delete(cluster, 1, topic="both").low_watermark == 1


def test_times_are_looked_up_among_what_is_left(cluster: ClusterWorld) -> None:
    cluster.advance(1_000)
    assert start(cluster, 0) == 0
    delete(cluster, 5)
    assert start(cluster, 0) == 5
    assert start(cluster, GREATEST_TIMESTAMP) >= 5
    delete(cluster, -1)
    assert start(cluster, 0) == -1
    assert start(cluster, GREATEST_TIMESTAMP) == -1


def test_another_leader_begins_where_the_killed_one_did(cluster: ClusterWorld) -> None:
    assert delete(cluster, 5).error_code == 0
    for _ in range(2):
        leader = kill_leader(cluster)
        assert is_deleted_before(cluster, 5)
        assert start(cluster) == 5
        cluster.hosts[leader].start()
        cluster.until_started(leader)


def test_a_power_failure_everywhere_brings_nothing_back(cluster: ClusterWorld) -> None:
    assert delete(cluster, 5).error_code == 0
    cluster.lose_power()
    cluster.until(lambda: cluster.leader_of("t") != 0)
    assert is_deleted_before(cluster, 5)
    cluster.until(lambda: all(one.log_start_offset == 5 for one in replicas(cluster)))


def test_segments_of_deleted_records_go_and_the_marker_with_them(cluster: ClusterWorld) -> None:
    close_segments(cluster)
    produce(cluster, "t", b"10", b"11")
    delete(cluster, 11)
    cluster.advance(2 * CLEAN_INTERVAL_MS)
    assert [replica.log.start_offset for replica in replicas(cluster)] == [10, 10, 10]
    close_segments(cluster)
    produce(cluster, "t", b"12")
    for replica in replicas(cluster):
        replica.log.config = replace(replica.log.config, retention_records=1)
    cluster.advance(2 * CLEAN_INTERVAL_MS)
    for replica in replicas(cluster):
        assert (replica.log.start_offset, replica.log.deletions) == (12, [])
    kill_leader(cluster)
    assert is_deleted_before(cluster, 12)


def test_a_follower_that_was_away_learns_it_from_the_log_or_begins_behind_it(
    cluster: ClusterWorld,
) -> None:
    away = cluster.leader_of("t") % 3 + 1
    cluster.hosts[away].kill()
    assert delete(cluster, 5).error_code == 0
    cluster.hosts[away].start()
    cluster.until_started(away)
    cluster.until(lambda: cluster.replicas_of("t")[away].log_start_offset == 5)
    cluster.hosts[away].kill()
    close_segments(cluster)
    produce(cluster, "t", b"10")
    delete(cluster, -1)
    for replica in replicas(cluster):
        replica.log.config = replace(replica.log.config, retention_records=0)
    cluster.advance(4 * CLEAN_INTERVAL_MS)
    assert max(replica.log.start_offset for replica in replicas(cluster)) == 11
    cluster.hosts[away].start()
    cluster.until_started(away)
    cluster.until(lambda: cluster.replicas_of("t")[away].log_start_offset == 11)


def test_a_deletion_that_was_never_committed_is_none(cluster: ClusterWorld) -> None:
    leader = cluster.leader_of("t")
    others = [broker for broker in (1, 2, 3) if broker != leader]
    for other in others:
        cluster.hosts[other].kill()
    pending = cluster.send(leader, request(5), 2)
    cluster.advance(100)
    replica = cluster.replicas_of("t")[leader]
    assert [before for _, before in replica.log.deletions] == [5]
    assert replica.log_start_offset == 0
    cluster.hosts[leader].kill()
    assert not pending.is_answered
    for other in others:
        cluster.hosts[other].start()
    cluster.until_started(*others)
    cluster.until(lambda: cluster.leader_of("t") != 0)
    assert start(cluster) == 0
    cluster.hosts[leader].start()
    cluster.until_started(leader)
    replica = cluster.replicas_of("t")[leader]
    cluster.until(lambda: replica.log.last_epoch == cluster.replicas_of("t")[others[0]].epoch)
    assert (replica.log.deletions, replica.log_start_offset) == ([], 0)
    assert len(fetch(cluster, "t", offset=0)) == 10


def test_a_follower_that_cannot_tell_where_the_partition_begins_serves_no_reads(
    cluster: ClusterWorld,
) -> None:
    follower = cluster.leader_of("t") % 3 + 1
    replica = cluster.replicas_of("t")[follower]
    assert fetched(cluster, 0, at=follower).error_code == 0
    marker = build_deletion_marker(replica.log.end_offset, replica.epoch, replica.log.end_offset, 0)
    header = read_header(marker)
    assert header is not None
    process = cluster.hosts[follower].process
    assert process is not None
    process.run_now(lambda: replica.log.append([marker], [header]))
    for offset in (0, 10):
        assert fetched(cluster, offset, at=follower).error_code == Error.NOT_LEADER_OR_FOLLOWER


def miss_deletion(cluster: ClusterWorld, follower: int) -> None:
    """Let a follower miss a deletion, as a process that is stopped for a while."""
    assert fetched(cluster, 0, at=follower).error_code == 0
    cluster.hosts[follower].pause()
    cluster.advance(AWAY_MS)
    assert delete(cluster, 5).error_code == 0


def test_a_follower_that_was_away_shows_nothing_that_was_deleted_meanwhile(
    cluster: ClusterWorld,
) -> None:
    follower = cluster.leader_of("t") % 3 + 1
    miss_deletion(cluster, follower)
    cluster.hosts[follower].resume()
    for _ in range(20):
        answer = fetched(cluster, 0, at=follower)
        assert answer.error_code in (Error.NOT_LEADER_OR_FOLLOWER, Error.OFFSET_OUT_OF_RANGE)
        cluster.advance(5)
    cluster.advance(2_000)
    assert is_deleted_before(cluster, 5, at=follower)


def test_a_follower_that_is_far_behind_serves_what_is_left(
    cluster: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It need not have the deletion to know where the partition begins."""
    follower = cluster.leader_of("t") % 3 + 1
    miss_deletion(cluster, follower)
    replication = cluster.broker(follower).replication
    monkeypatch.setattr(replication.inbound, "_on_append", lambda _peer, _message: None)
    cluster.hosts[follower].resume()
    cluster.advance(2_000)
    assert is_deleted_before(cluster, 5, at=follower)
    assert cluster.replicas_of("t")[follower].log.deletions == []
    reported_in = cluster.replicas_of("t")[follower].deletions.reported_in
    assert reported_in is not None
    for _ in range(20):
        assert produce(cluster, "t", b"more").error_code == 0
        assert fetched(cluster, 5, at=follower).records
        cluster.advance(200)
    assert cluster.replicas_of("t")[follower].deletions.reported_in == reported_in, (
        "nothing asked again"
    )


def test_a_follower_that_does_not_hear_its_leader_sends_readers_away(
    cluster: ClusterWorld,
) -> None:
    leader = cluster.leader_of("t")
    follower = leader % 3 + 1
    assert fetched(cluster, 0, at=follower).error_code == 0
    for broker in (1, 2, 3):
        if broker != follower:
            cluster.hosts[broker].pause()
    cluster.advance(AWAY_MS)
    assert fetched(cluster, 0, at=follower).error_code == Error.NOT_LEADER_OR_FOLLOWER
    for broker in (1, 2, 3):
        if broker != follower:
            cluster.hosts[broker].resume()
    cluster.advance(5_000)
    assert fetched(cluster, 0, at=follower).error_code == 0


def test_no_answer_before_every_living_follower_has_it(cluster: ClusterWorld) -> None:
    leader = cluster.leader_of("t")
    slow = leader % 3 + 1
    cluster.hosts[slow].pause()
    pending = cluster.send(leader, request(5), 2)
    cluster.advance(150)
    assert cluster.replicas_of("t")[leader].log_start_offset == 5, "a quorum has it"
    assert not pending.is_answered
    cluster.hosts[slow].resume()
    cluster.until(lambda: pending.is_answered)
    (result,) = pending.answer(DeleteRecordsResponse).topics[0].partitions
    assert (result.error_code, result.low_watermark) == (0, 5)
    assert [before for _, before in cluster.replicas_of("t")[slow].log.deletions] == [5]


def test_a_leader_without_a_quorum_says_that_time_is_over(cluster: ClusterWorld) -> None:
    leader = cluster.leader_of("t")
    for other in (1, 2, 3):
        if other != leader:
            cluster.hosts[other].kill()
    answer = cluster.ask(leader, request(5), DeleteRecordsResponse, 2)
    (result,) = answer.topics[0].partitions
    assert result.error_code in (Error.REQUEST_TIMED_OUT, Error.NOT_LEADER_OR_FOLLOWER)
    assert result.low_watermark == -1
