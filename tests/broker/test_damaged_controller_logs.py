"""Damage in the controller's log of one broker is repaired from the other voters.

Source: decision 0007; reliability reference 1b (disk corruption)."""

from collections.abc import Iterator

import pytest
from tests.broker.cluster_world import ClusterWorld, three_brokers
from tests.broker.test_broker_in_a_cluster import produce
from tests.broker.test_damaged_logs import (
    FIRST_SEGMENT,
    IN_EPOCH,
    IN_RECORDS,
    file_size,
    is_whole,
    rot,
    stop,
)

from strandline.base.errors import OperatorError

TOPICS = ("a", "b", "c", "d")


@pytest.fixture
def cluster() -> Iterator[ClusterWorld]:
    """Three brokers whose controller has decided a few things, all noted to be durable but the
    last."""
    with three_brokers() as world:
        for topic in TOPICS[:-1]:
            world.create_topic(topic)
        world.advance(6_000)  # What is durable is noted every 5 s.
        world.create_topic(TOPICS[-1])
        world.advance(1_000)
        yield world


def follower(world: ClusterWorld) -> int:
    """A broker that does not lead the controller's group."""
    return next(one for one in (1, 2, 3) if not world.controller(one).is_leader)


def is_there(world: ClusterWorld, broker: int) -> bool:
    """Whether a broker knows everything that was decided, and its log is sound."""
    known = world.broker(broker).controller.cluster.topics
    leader = next((one for one in (1, 2, 3) if world.controller(one).is_leader), 0)
    return (
        leader > 0
        and all(topic in known for topic in TOPICS)
        and world.controller(broker).high_watermark == world.controller(leader).high_watermark
        and is_whole(world.controller(broker))
    )


def test_a_log_that_cannot_be_opened_is_cut_and_copied_again(
    cluster: ClusterWorld, caplog: pytest.LogCaptureFixture
) -> None:
    damaged = follower(cluster)
    replica = cluster.controller(damaged)
    state = (replica.epoch, replica.raft.vote)
    end = replica.log_end_offset
    cluster.hosts[damaged].kill()
    rot(cluster, damaged, replica, at=IN_RECORDS, batch=2)
    cluster.hosts[damaged].start()
    cluster.until(lambda: 0 in cluster.broker(damaged).replication.replicas)
    assert "its log cannot be opened" in caplog.text
    copy = cluster.controller(damaged)
    assert copy.raft.has_lost_state, "it must not vote as if it had everything"
    assert copy.log_end_offset < end
    assert (copy.epoch, copy.raft.vote) == state
    cluster.until_started(damaged)
    cluster.until(lambda: not cluster.controller(damaged).raft.has_lost_state)
    cluster.until(lambda: is_there(cluster, damaged))
    assert produce(cluster, "a", b"served").error_code == 0
    cluster.create_topic("e")
    cluster.until(lambda: "e" in cluster.broker(damaged).controller.cluster.topics)


def test_an_epoch_that_never_was_is_copied_anew(cluster: ClusterWorld) -> None:
    damaged = follower(cluster)
    replica = cluster.controller(damaged)
    cluster.hosts[damaged].kill()
    rot(cluster, damaged, replica, at=IN_EPOCH)
    cluster.hosts[damaged].start()
    cluster.until_started(damaged)
    cluster.until(lambda: not cluster.controller(damaged).raft.has_lost_state)
    cluster.until(lambda: is_there(cluster, damaged))


def test_a_broker_without_a_vote_copies_its_log_again(cluster: ClusterWorld) -> None:
    """It is not among the seeds, so they learn where it is from itself."""
    world = ClusterWorld()
    world.until_started()
    world.create_topic("a")
    world.advance(6_000)
    world.create_topic("b")
    replica = world.controller(4)
    world.hosts[4].kill()
    rot(world, 4, replica, at=IN_RECORDS, batch=2)
    world.hosts[4].start()
    world.until_started(4)
    world.until(lambda: "b" in world.broker(4).controller.cluster.topics)
    world.until(lambda: is_whole(world.controller(4)))
    world.close()


def test_a_damaged_log_is_kept_while_nobody_else_leads(cluster: ClusterWorld) -> None:
    damaged = follower(cluster)
    replica = cluster.controller(damaged)
    others = [one for one in (1, 2, 3) if one != damaged]
    for broker in (1, 2, 3):
        cluster.hosts[broker].kill()
    size = rot(cluster, damaged, replica, at=IN_RECORDS, batch=2)
    for broker in (damaged, others[0]):
        cluster.hosts[broker].start()
    cluster.advance(60_000)
    assert not cluster.starts[damaged].done()
    assert not cluster.controller(others[0]).is_leader, "it has only its own vote"
    assert file_size(cluster, damaged, f"{replica.log.directory}/{FIRST_SEGMENT}") == size
    cluster.hosts[others[1]].start()
    cluster.until_started()
    cluster.until(lambda: is_there(cluster, damaged))


def test_a_broker_that_ends_while_it_copies_goes_on_copying(cluster: ClusterWorld) -> None:
    damaged = follower(cluster)
    replica = cluster.controller(damaged)
    cluster.hosts[damaged].kill()
    rot(cluster, damaged, replica, at=IN_RECORDS, batch=2)
    cluster.hosts[damaged].start()
    cluster.until(lambda: 0 in cluster.broker(damaged).replication.replicas)
    cluster.hosts[damaged].fail_power()
    cluster.hosts[damaged].start()
    cluster.until(lambda: 0 in cluster.broker(damaged).replication.replicas)
    assert cluster.controller(damaged).raft.has_lost_state
    cluster.until_started(damaged)
    cluster.until(lambda: not cluster.controller(damaged).raft.has_lost_state)
    cluster.until(lambda: is_there(cluster, damaged))


def test_damage_that_is_met_when_the_log_is_replayed_is_mended(cluster: ClusterWorld) -> None:
    """A log that was closed in order is not read when it is opened."""
    damaged = follower(cluster)
    replica = cluster.controller(damaged)
    stop(cluster, damaged)
    rot(cluster, damaged, replica, at=IN_RECORDS, batch=1)
    cluster.hosts[damaged].start()
    cluster.until_started(damaged)
    assert cluster.failures == {}
    cluster.until(lambda: is_there(cluster, damaged))
    assert cluster.broker(damaged).replication.repairs.mended_count == 1
    assert not cluster.controller(damaged).raft.has_lost_state, "it has forgotten nothing"


def test_damage_that_a_controller_meets_is_mended(cluster: ClusterWorld) -> None:
    """The next leader decides nothing before it knows every decision."""
    sound = follower(cluster)
    for broker in (1, 2, 3):
        replica = cluster.controller(broker)
        stop(cluster, broker)
        if broker != sound:
            rot(cluster, broker, replica, at=IN_RECORDS, batch=broker)
    for broker in (1, 2, 3):
        cluster.hosts[broker].start()
    cluster.until_started()
    assert cluster.failures == {}
    cluster.until(lambda: all(is_there(cluster, broker) for broker in (1, 2, 3)))
    cluster.until(lambda: cluster.leader_of("a") != 0)
    assert produce(cluster, "a", b"served").error_code == 0
    cluster.create_topic("e")


def test_the_only_voter_says_what_to_do() -> None:
    world = ClusterWorld((1,), voters=(1,))
    world.until_started()
    world.create_topic("a", replicas=1)
    world.advance(6_000)
    world.create_topic("b", replicas=1)
    replica = world.controller(1)
    world.hosts[1].kill()
    rot(world, 1, replica, at=IN_RECORDS)
    world.hosts[1].start()
    world.until(lambda: world.starts[1].done())
    error = world.starts[1].exception()
    assert isinstance(error, OperatorError)
    assert "no other broker has a vote" in str(error)
    assert FIRST_SEGMENT in str(error)
    assert "restore the data directory" in str(error)
    assert "\n" not in str(error)
    world.close()
