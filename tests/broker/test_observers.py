"""Observers of a partition under load come, go and change roles while brokers die; no write waits
for them.

Source: decision 0017."""

from collections.abc import Iterator
from itertools import product as pairs

import pytest
from tests.broker.cluster_world import ClusterWorld, joined
from tests.broker.moving_world import TOPIC, MovingWorld, moving_world
from tests.broker.test_broker_in_a_cluster import fetch, produce
from tests.broker.test_delete_records import delete, fetched

from strandline.model.ids import NO_BROKER, BrokerId
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from strandline.protocol.messages.describe_observers import (
    DescribeObserversRequest,
    DescribeObserversResponse,
    ObservedPartition,
)
from strandline.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from strandline.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from strandline.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
)

VOTERS = (1, 2, 3)
STAGES = ("target", "observer", "granted", "final", "stable")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingWorld]:
    """Five brokers, one topic with voters 1 to 3 and observer 4, a producer that goes on."""
    with moving_world(monkeypatch) as made:
        made.balance(VOTERS, (4,))
        made.finish(*VOTERS, observers=(4,))
        yield made


def reach(world: MovingWorld, stage: str) -> None:
    """Let a change from version 1 get so far."""
    if stage == "observer":
        world.until(lambda: world.any_leader(lambda one: 5 in one.configuration.observers))
    elif stage == "stable":
        world.until(lambda: world.known.version == 2)
    else:
        world.reach(stage)


def test_an_observer_has_everything_and_no_vote(world: MovingWorld) -> None:
    """It holds no lease, and makes up no quorum: without two voters nothing is acknowledged."""
    world.hosts[2].kill()
    world.hosts[3].kill()
    world.advance(3_000)
    before = len(world.acked)
    world.advance(5_000)
    assert len(world.acked) == before
    assert world.leader_of(TOPIC) != 4
    world.hosts[2].start()
    world.hosts[3].start()
    world.until_started(2, 3)
    world.finish(*VOTERS, observers=(4,))


def test_no_election_is_won_by_an_observer_s_vote(world: MovingWorld) -> None:
    """One voter and the observer are two of four replicas, and one of three voters."""
    leader = world.leader_of(TOPIC)
    others = [one for one in VOTERS if one != leader]
    world.hosts[leader].kill()
    world.hosts[others[0]].kill()
    for _ in range(50):
        world.advance(100)
        assert world.leader_of(TOPIC) == 0
    for one in (leader, others[0]):
        world.hosts[one].start()
    world.until_started(leader, others[0])
    world.finish(*VOTERS, observers=(4,))


def test_nobody_waits_for_an_observer_that_is_down(world: MovingWorld) -> None:
    world.hosts[4].kill()
    world.advance(2_000)
    before = len(world.acked)
    world.advance(5_000)
    assert len(world.acked) > before + 200
    world.hosts[4].start()
    world.until_started(4)
    world.finish(*VOTERS, observers=(4,))


@pytest.mark.parametrize(
    ("stage", "victim"), list(pairs(STAGES, ("leader", "controller", "added", "removed")))
)
def test_an_observer_is_replaced_whoever_dies_at_whatever_stage(
    world: MovingWorld, stage: str, victim: str
) -> None:
    world.balance(VOTERS, (5,))
    reach(world, stage)
    world.kill_one(victim, added=5, removed=4)
    world.finish(*VOTERS, observers=(5,))


@pytest.mark.parametrize("stage", STAGES[:-1])
def test_a_change_of_observers_is_cancelled_at_any_stage(world: MovingWorld, stage: str) -> None:
    world.balance(VOTERS, (5,))
    reach(world, stage)
    world.cancel()
    world.lose_power()
    world.until(lambda: not world.known.is_moving)
    final = world.known.observers
    assert final in ((4,), (5,))
    world.finish(*VOTERS, observers=final)


@pytest.mark.parametrize(
    ("voters", "observers"),
    [((1, 2, 4), (3,)), ((4,), (1, 2, 3)), ((1, 2, 3, 4), ()), ((1, 2), (3, 4)), ((4, 5), (1,))],
)
def test_roles_change_there_and_back_while_a_producer_writes(
    world: MovingWorld, voters: tuple[int, ...], observers: tuple[int, ...]
) -> None:
    """By one grant each, joint where voters come or go. Members that stay keep their logs."""
    stay = set(voters + observers) & {1, 2, 3, 4}
    for _ in range(2):
        world.balance(voters, observers)
        removed: list[int] = []
        world.until(
            lambda gone=removed: (  # type: ignore[misc]
                gone.extend(one for one in stay if one not in world.replicas_of(TOPIC))
                or world.is_settled(*voters, observers=observers)
            )
        )
        assert removed == []
        world.balance(VOTERS, (4,))
        world.finish(*VOTERS, observers=(4,))


@pytest.mark.parametrize("stage", ["granted", "joint", "final"])
def test_a_leader_dies_in_the_middle_of_a_change_of_roles(world: MovingWorld, stage: str) -> None:
    world.balance((1, 2, 4), (3,))
    if stage == "granted":
        reach(world, stage)
    else:
        world.until(
            lambda: world.any_leader(
                lambda one: (
                    one.configuration.version == 2
                    and one.configuration.is_joint == (stage == "joint")
                )
            )
        )
    world.lose_power_of(world.leader_of(TOPIC) or 2, for_ms=3_000)
    world.finish(1, 2, 4, observers=(3,))
    world.check()


def test_an_observer_that_is_removed_while_it_is_away_clears_its_log(world: MovingWorld) -> None:
    world.hosts[4].kill()
    world.balance(VOTERS, ())
    world.until(lambda: not world.known.is_moving)
    world.hosts[4].start()
    world.until_started(4)
    world.finish(*VOTERS)


def test_an_observer_that_loses_its_disk_is_copied_anew(world: MovingWorld) -> None:
    world.hosts[4].kill()
    world.hosts[4].lose_disk()
    world.advance(3_000)
    world.hosts[4].start()
    world.until_started(4)
    world.finish(*VOTERS, observers=(4,))


def test_one_that_is_added_and_down_keeps_the_change_waiting_and_nobody_else(
    world: MovingWorld,
) -> None:
    world.hosts[5].kill()
    world.balance(VOTERS, (5,))
    world.advance(5_000)
    before = len(world.acked)
    world.advance(5_000)
    assert len(world.acked) > before + 200
    assert not world.known.pending
    assert 4 in world.replicas_of(TOPIC)
    world.hosts[5].start()
    world.until_started(5)
    world.finish(*VOTERS, observers=(5,))


def test_what_a_permanent_observer_lacks_is_no_copy_for_a_move(world: MovingWorld) -> None:
    leader = world.replicas_of(TOPIC)[world.leader_of(TOPIC)]
    assert leader.leadership is not None
    assert not leader.leadership.sender.urgency.is_copied_to(BrokerId(4))
    world.balance(VOTERS, (5,))
    reach(world, "observer")
    leader = world.replicas_of(TOPIC)[world.leader_of(TOPIC)]
    assert leader.leadership is not None
    assert leader.leadership.sender.urgency.is_copied_to(BrokerId(5))
    assert not leader.leadership.sender.urgency.is_copied_to(BrokerId(4))
    world.finish(*VOTERS, observers=(5,))


# ---- deletions (decision 0006) -------------------------------------------------------------------


def hold_flushes(world: MovingWorld, broker: int) -> None:
    """What this broker has is not durable from now on, though it lives and is heard."""
    replica = world.replicas_of(TOPIC)[broker]
    world.until(lambda: not replica.flushes.is_under_way)
    replica.flushes.is_under_way = True  # As if a flush did not return.


def read_from(world: MovingWorld, broker: int, offset: int = 0) -> None:
    """Until it serves what is there."""
    world.until(
        lambda: fetched(world, offset, at=broker, topic=TOPIC).error_code == 0, every_ms=100
    )


def test_a_deletion_does_not_wait_for_an_observer_that_nobody_reads(world: MovingWorld) -> None:
    hold_flushes(world, 4)
    before = len(world.acked)
    world.until(lambda: len(world.acked) > before)
    assert delete(world, 3, topic=TOPIC).error_code == 0


def test_a_deletion_waits_for_an_observer_that_is_read(world: MovingWorld) -> None:
    read_from(world, 4)
    hold_flushes(world, 4)
    result = delete(world, 3, topic=TOPIC)
    assert result.error_code == Error.REQUEST_TIMED_OUT


def test_an_observer_that_is_read_for_the_first_time_asks_where_the_partition_begins(
    world: MovingWorld,
) -> None:
    """However far behind its log is: what was answered as deleted is not read there."""
    hold_flushes(world, 4)
    assert delete(world, 3, topic=TOPIC).error_code == 0
    read_from(world, 4, offset=3)
    assert fetched(world, 2, at=4, topic=TOPIC).error_code == Error.OFFSET_OUT_OF_RANGE


def test_after_a_change_of_leaders_an_observer_asks_the_new_one(world: MovingWorld) -> None:
    """Its answer to the leader before is lost with it, and so is the request."""
    read_from(world, 4)
    before = world.leader_of(TOPIC)
    world.hosts[before].kill()
    world.until(lambda: world.leader_of(TOPIC) not in (0, before))
    hold_flushes(world, 4)
    assert produce(world, TOPIC, b"x").error_code == 0
    assert delete(world, 3, topic=TOPIC).error_code == 0
    read_from(world, 4, offset=3)
    assert fetched(world, 2, at=4, topic=TOPIC).error_code == Error.OFFSET_OUT_OF_RANGE


# ---- what is seen --------------------------------------------------------------------------------

PINNED = (
    "rules: [{count: 3, where: [{label: broker, op: in, values: ['1', '2', '3']}]},"
    "{role: observer, count: 1, where: [{label: broker, op: in, values: ['4']}]}]"
)
NAME = "watched"


@pytest.fixture
def cluster() -> Iterator[ClusterWorld]:
    """Five brokers, a topic with voters 1 to 3 and observer 4 by its policy, three records."""
    with joined(ClusterWorld((1, 2, 3, 4, 5))) as made:
        made.create_topic(NAME, replicas=-1, configs=(("placement.policy", PINNED),))
        for value in (b"a", b"b", b"c"):
            assert produce(made, NAME, value).error_code == 0
        made.until(lambda: len(made.replicas_of(NAME)) == 4)
        made.until(lambda: made.replicas_of(NAME)[4].high_watermark == 3)
        yield made


def metadata(cluster: ClusterWorld, at: int) -> MetadataResponsePartition:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=NAME)])
    answer = cluster.ask(at, request, MetadataResponse, 12)
    return answer.topics[0].partitions[0]


@pytest.mark.parametrize("at", [1, 2, 3, 4, 5])
def test_an_observer_is_a_replica_that_is_never_in_sync_and_never_leads(
    cluster: ClusterWorld, at: int
) -> None:
    """As Confluent tells clients: last among the replicas, and in no ISR."""
    one = metadata(cluster, at)
    assert sorted(one.replica_nodes[:3]) == sorted(one.isr_nodes) == [1, 2, 3]
    assert one.replica_nodes[3:] == [4]
    assert one.leader_id in (1, 2, 3) and one.offline_replicas == []
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=NAME)])
    told = cluster.ask(at, request, DescribeTopicPartitionsResponse, 0).topics[0].partitions[0]
    assert (told.replica_nodes[3:], sorted(told.isr_nodes)) == ([4], [1, 2, 3])
    assert told.eligible_leader_replicas == []
    observed = cluster.ask(at, DescribeObserversRequest(), DescribeObserversResponse, 0)
    assert observed.partitions == [ObservedPartition(topic=NAME, observers=[4])]
    asked = DescribeObserversRequest(topics=["other", NAME])
    assert cluster.ask(at, asked, DescribeObserversResponse, 0).partitions == observed.partitions


def test_an_observer_that_is_down_is_offline(cluster: ClusterWorld) -> None:
    cluster.hosts[4].kill()
    cluster.advance(5_000)
    assert metadata(cluster, 1).offline_replicas == [4]
    assert sorted(metadata(cluster, 1).isr_nodes) == [1, 2, 3]


def test_an_observer_serves_what_is_committed(cluster: ClusterWorld) -> None:
    found = fetched(cluster, 0, at=4, topic=NAME)
    assert found.high_watermark == 3
    assert fetch(cluster, NAME, at=4) == [b"a", b"b", b"c"]


def test_an_observer_tells_how_large_its_log_is(cluster: ClusterWorld) -> None:
    topics = [DescribableLogDirTopic(NAME, [0])]
    request = DescribeLogDirsRequest(topics=topics)
    sizes = {}
    for at in (1, 4, 5):
        (result,) = cluster.ask(at, request, DescribeLogDirsResponse, 4).results
        sizes[at] = [one.partition_size for each in result.topics for one in each.partitions]
    assert sizes[4] == sizes[1] != [] and sizes[5] == []


def test_elections_by_hand_never_make_an_observer_the_leader(cluster: ClusterWorld) -> None:
    first = metadata(cluster, 1).replica_nodes[0]
    asked = [TopicPartitions(topic=NAME, partitions=[0])]
    request = ElectLeadersRequest(topic_partitions=asked, timeout_ms=5_000)
    cluster.ask(1, request, ElectLeadersResponse, 2)
    cluster.until(lambda: cluster.leader_of(NAME) == first)
    for one in (1, 2, 3):
        cluster.hosts[one].kill()
    cluster.advance(5_000)
    assert cluster.leader_of(NAME) == 0


def test_an_observer_asked_to_lead_is_no_heir(cluster: ClusterWorld) -> None:
    """Nor does the leader stop, or wait, because of it."""
    before = cluster.leader_of(NAME)
    cluster.replicas_of(NAME)[before].transfer_leadership(BrokerId(4))
    assert produce(cluster, NAME, b"d").error_code == 0
    assert cluster.leader_of(NAME) == before


def test_an_observer_that_shuts_down_hands_nothing_over(cluster: ClusterWorld) -> None:
    """A broker in maintenance, or that ends, has nothing to give away where it only watches."""
    replica = cluster.replicas_of(NAME)[4]
    assert replica.hand_over() == NO_BROKER
    assert not replica.is_waited_for
