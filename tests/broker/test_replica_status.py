"""The progress of each replica, as its leader reports it: in step, cut off, returned, led
elsewhere.

Source: reference observers 4.4 (the fields of kafka-replica-status)."""

from collections.abc import Iterator

import pytest
from tests.broker.cluster_world import BROKERS, ClusterWorld
from tests.broker.moving_world import MovingWorld, moving_world
from tests.broker.test_broker_in_a_cluster import produce
from tests.broker.test_promotion import EAST, WEST, constraints, kill, voting, watched_world

from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from strandline.protocol.messages.describe_replica_status import (
    DescribeReplicaStatusRequest,
    DescribeReplicaStatusResponse,
    PartitionReplicaStatus,
    ReplicaStatus,
    ReplicaStatusTopic,
)

SILENT_MS = 5_000


@pytest.fixture
def world() -> ClusterWorld:
    """Four brokers, a topic on three of them, three records."""
    made = ClusterWorld(BROKERS)
    made.until_started()
    made.create_topic("t", configs=(("min.insync.replicas", "2"),))
    assert produce(made, "t", b"a", b"b", b"c").error_code == 0
    made.advance(1_000)
    return made


def ask(
    world: ClusterWorld, *, at: int = 0, topic: str = "t", index: int = 0
) -> PartitionReplicaStatus:
    request = DescribeReplicaStatusRequest(topics=[ReplicaStatusTopic(topic, [index])])
    answer = world.ask(at or world.leader_of("t"), request, DescribeReplicaStatusResponse, 0)
    (one,) = answer.topics
    (partition,) = one.partitions
    assert (one.name, partition.partition_index) == (topic, index)
    return partition


def status_of(world: ClusterWorld, broker: int) -> ReplicaStatus:
    (found,) = [one for one in ask(world).replicas if one.broker_id == broker]
    return found


def followers(world: ClusterWorld) -> list[int]:
    return sorted(set(world.replicas_of("t")) - {world.leader_of("t")})


def cut_off(world: ClusterWorld, broker: int) -> None:
    for other in set(world.hosts) - {broker}:
        world.fabric.cut(BrokerId(broker), BrokerId(other))
        world.fabric.cut(BrokerId(other), BrokerId(broker))


def heal(world: ClusterWorld, broker: int) -> None:
    for other in set(world.hosts) - {broker}:
        world.fabric.heal(BrokerId(broker), BrokerId(other))
        world.fabric.heal(BrokerId(other), BrokerId(broker))


def test_an_idle_partition_is_caught_up_however_long_it_is_idle(world: ClusterWorld) -> None:
    world.advance(60_000)
    status = ask(world)
    assert status.error_code == 0 and status.leading_ms >= 60_000
    leader = world.leader_of("t")
    assert {one.broker_id for one in status.replicas} == set(world.replicas_of("t"))
    for one in status.replicas:
        assert one.is_leader == (one.broker_id == leader)
        assert (one.is_isr_eligible, one.is_in_isr, one.is_caught_up) == (True, True, True)
        assert not one.is_observer
        assert (one.last_caught_up_lag_ms, one.log_end_offset) == (0, 3)
        assert 0 <= one.last_fetch_lag_ms < 1_000
        assert one.log_start_offset == (0 if one.is_leader else -1)


def test_who_is_silent_was_last_caught_up_when_it_was_last_heard(world: ClusterWorld) -> None:
    gone = followers(world)[0]
    cut_off(world, gone)
    world.advance(SILENT_MS)
    status = status_of(world, gone)
    assert (status.is_in_isr, status.is_caught_up) == (False, False)
    assert abs(status.last_fetch_lag_ms - SILENT_MS) < 1_000
    assert status.last_caught_up_lag_ms == status.last_fetch_lag_ms
    assert status.log_end_offset == 3
    # Records that it lacks make it no more caught up than it was known to be.
    assert produce(world, "t", b"d", b"e").error_code == 0
    status = status_of(world, gone)
    assert status.last_caught_up_lag_ms == status.last_fetch_lag_ms
    assert status.log_end_offset == 3
    heal(world, gone)
    leader = world.replicas_of("t")[world.leader_of("t")]
    world.until(lambda: leader.raft.progress[BrokerId(gone)].match_flushed == leader.log.last_index)
    status = status_of(world, gone)
    assert (status.is_in_isr, status.log_end_offset, status.last_caught_up_lag_ms) == (True, 5, 0)


def test_what_a_living_replica_lacks_is_as_old_as_its_append(world: ClusterWorld) -> None:
    """The follower's disk takes no flush: it is heard all the time, and falls behind."""
    slow = followers(world)[0]
    replica = world.replicas_of("t")[slow]
    replica.flushes.is_under_way = True  # As if a flush were under way that takes for ever.
    assert produce(world, "t", b"d").error_code == 0
    world.advance(3_000)
    status = status_of(world, slow)
    assert status.last_fetch_lag_ms < 1_000
    assert 3_000 <= status.last_caught_up_lag_ms < 4_000
    assert status.log_end_offset == 3


def test_a_new_leader_does_not_guess_how_long_somebody_has_been_behind(
    world: ClusterWorld,
) -> None:
    """For how long a replica has lacked what an earlier leader appended is unknown."""
    old = world.leader_of("t")
    gone, transfer_target = followers(world)
    cut_off(world, gone)
    assert produce(world, "t", b"d").error_code == 0
    world.replicas_of("t")[old].transfer_leadership(BrokerId(transfer_target))
    world.until(lambda: world.leader_of("t") == transfer_target)
    world.advance(SILENT_MS)
    status = status_of(world, gone)
    assert (status.last_caught_up_lag_ms, status.log_end_offset) == (-1, -1)
    assert (status.is_in_isr, status.is_caught_up) == (False, False)
    assert ask(world).leading_ms < 2 * SILENT_MS
    assert status_of(world, old).last_caught_up_lag_ms == 0


def test_who_does_not_lead_says_so(world: ClusterWorld) -> None:
    assert ask(world, at=followers(world)[0]).error_code == Error.NOT_LEADER_OR_FOLLOWER
    assert ask(world, topic="none").error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert ask(world, index=9).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION


def test_each_broker_tells_where_its_own_log_begins_whoever_leads(world: ClusterWorld) -> None:
    leader, (follower, other) = world.leader_of("t"), followers(world)
    cut_off(world, other)
    asked = DeleteRecordsPartition(partition_index=0, offset=2)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic("t", [asked])], timeout_ms=10_000)
    world.ask(leader, request, DeleteRecordsResponse, 2)
    world.until(lambda: world.replicas_of("t")[follower].log_start_offset == 2)
    status = ask(world, at=follower)
    assert (status.error_code, status.log_start_offset) == (Error.NOT_LEADER_OR_FOLLOWER, 2)
    assert (ask(world).log_start_offset, ask(world, at=other).log_start_offset) == (2, 0)
    (absent,) = set(world.hosts) - set(world.replicas_of("t"))
    assert ask(world, at=absent).log_start_offset == -1


@pytest.fixture
def moving(monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingWorld]:
    """Five brokers, one topic on the first three, a producer that goes on."""
    with moving_world(monkeypatch) as made:
        yield made


def status(world: MovingWorld) -> dict[int, ReplicaStatus]:
    request = DescribeReplicaStatusRequest(topics=[ReplicaStatusTopic("moved", [0])])
    answer = world.ask(world.leader_of("moved"), request, DescribeReplicaStatusResponse, 0)
    return {one.broker_id: one for one in answer.topics[0].partitions[0].replicas}


def test_a_replica_that_is_added_is_an_observer_until_it_votes(moving: MovingWorld) -> None:
    assert moving.move(1, 2, 4) == 0
    moving.until(lambda: moving.any_leader(lambda one: bool(one.configuration.observers)))
    added = status(moving)[4]
    assert (added.is_observer, added.is_isr_eligible, added.is_in_isr) == (True, False, False)
    moving.until(lambda: moving.is_settled(1, 2, 4))
    settled = status(moving)
    assert sorted(settled) == [1, 2, 4]
    assert (settled[4].is_observer, settled[4].is_isr_eligible) == (False, True)


def test_who_may_be_in_sync_is_a_voter_though_it_has_left_or_an_observer_that_stands_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The tutorial's: one of two voters is lost, and one of two observers promoted."""
    with watched_world(monkeypatch, policy=constraints({"west": 2}, {"east": 2})) as world:
        lost = next(one for one in WEST if one != world.leader_of("moved"))
        kill(world, lost)
        world.until(lambda: voting(world, own=(world.leader_of("moved"),), observers=1))
        (promoted,) = set(world.known.voters) & set(EAST)
        (other,) = set(EAST) - {promoted}

        def flags(broker: int) -> tuple[bool, bool, bool]:
            one = status(world)[broker]
            return one.is_observer, one.is_isr_eligible, one.is_in_isr

        assert flags(lost) == (False, True, False)
        assert flags(promoted) == (True, True, True)
        assert flags(other) == (True, False, False)
