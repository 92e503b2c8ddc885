"""ElectLeaders: preferred replicas lead at an administrator's request, whichever broker receives
it.

Source: KIP-183, KIP-460."""

import pytest
from tests.broker.cluster_world import ClusterWorld
from tests.broker.test_failback import leaders, lose_leader, preferred

from strandline.protocol.errors import Error
from strandline.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)


def elect(
    world: ClusterWorld,
    *topics: tuple[str, list[int]],
    at: int = 1,
    everything: bool = False,
    election_type: int = 0,
    timeout_ms: int = 5_000,
) -> dict[tuple[str, int], int]:
    """{(topic, partition): error code} as the answer has them."""
    asked = [TopicPartitions(topic=name, partitions=indexes) for name, indexes in topics]
    request = ElectLeadersRequest(
        election_type=election_type,
        topic_partitions=None if everything else asked,
        timeout_ms=timeout_ms,
    )
    answer = world.ask(at, request, ElectLeadersResponse, 2)
    assert (answer.error_code != 0) == (election_type not in (0, 1))
    return {
        (topic.topic, one.partition_id): one.error_code
        for topic in answer.replica_election_results
        for one in topic.partition_result
    }


@pytest.mark.parametrize("at", [1, 2, 3])
def test_the_preferred_replica_leads_when_the_answer_comes(cluster: ClusterWorld, at: int) -> None:
    cluster.create_topic("flights")
    first = preferred(cluster, "flights")
    assert lose_leader(cluster, "flights") != first
    cluster.advance(2_000)
    assert elect(cluster, ("flights", [0]), at=at) == {("flights", 0): 0}
    cluster.until(lambda: cluster.leader_of("flights") == first)
    again = elect(cluster, ("flights", [0]), at=at)
    assert again == {("flights", 0): Error.ELECTION_NOT_NEEDED}


@pytest.mark.parametrize("at", [1, 2, 3])
def test_the_answer_comes_as_soon_as_the_new_leader_is_heard_of(
    cluster: ClusterWorld, at: int
) -> None:
    cluster.create_topic("flights")
    first = preferred(cluster, "flights")
    assert lose_leader(cluster, "flights") != first
    cluster.advance(2_000)
    replication = cluster.broker(at).replication
    heard_us: list[int] = []
    replication.on_leader_known.append(lambda _: heard_us.append(cluster.scheduler.now_us))
    assert elect(cluster, ("flights", [0]), at=at) == {("flights", 0): 0}
    assert heard_us == [cluster.scheduler.now_us]


def test_what_takes_longer_than_the_client_waits_is_told_so_and_happens_all_the_same(
    cluster: ClusterWorld,
) -> None:
    cluster.create_topic("flights")
    first = preferred(cluster, "flights")
    assert lose_leader(cluster, "flights") != first
    cluster.advance(2_000)
    found = elect(cluster, ("flights", [0]), timeout_ms=0)
    assert found == {("flights", 0): Error.REQUEST_TIMED_OUT}
    cluster.until(lambda: cluster.leader_of("flights") == first)


def test_who_is_down_cannot_be_elected(cluster: ClusterWorld) -> None:
    cluster.create_topic("flights")
    first = preferred(cluster, "flights")
    cluster.hosts[first].kill()
    cluster.until(lambda: cluster.leader_of("flights") not in (0, first))
    cluster.advance(3_000)
    asked = next(one for one in cluster.hosts if one != first)
    found = elect(cluster, ("flights", [0]), at=asked)
    assert found == {("flights", 0): Error.PREFERRED_LEADER_NOT_AVAILABLE}


def test_all_partitions_are_asked_for_at_once_and_only_those_in_need_are_told(
    cluster: ClusterWorld,
) -> None:
    count = 12
    cluster.create_topic("many", partitions=count)
    wanted = [preferred(cluster, "many", one) for one in range(count)]
    cluster.until(lambda: leaders(cluster, "many", count) == wanted)
    assert elect(cluster, everything=True) == {}
    cluster.hosts[2].kill()
    cluster.until(lambda: not {0, 2} & set(leaders(cluster, "many", count)))
    cluster.hosts[2].start()
    cluster.until_started(2)
    cluster.advance(2_000)
    assert elect(cluster, everything=True) == {
        ("many", one): 0 for one in range(count) if wanted[one] == 2
    }
    cluster.until(lambda: leaders(cluster, "many", count) == wanted)


def test_what_is_not_there_is_unknown_and_unclean_elections_are_refused(
    cluster: ClusterWorld,
) -> None:
    cluster.create_topic("flights")
    found = elect(cluster, ("flights", [0, 7, 7]), ("none", [0]))
    assert found == {
        ("flights", 0): Error.ELECTION_NOT_NEEDED,
        ("flights", 7): Error.UNKNOWN_TOPIC_OR_PARTITION,
        ("none", 0): Error.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert elect(cluster, ("flights", [0]), ("none", [0]), election_type=1) == {
        ("flights", 0): Error.ELECTION_NOT_NEEDED,
        ("none", 0): Error.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert elect(cluster, ("flights", [0]), election_type=2) == {
        ("flights", 0): Error.INVALID_REQUEST
    }
    assert elect(cluster, everything=True, election_type=1) == {}


def test_whom_nobody_leads_is_told_what_helps_where_an_unclean_election_is_asked_for(
    cluster: ClusterWorld,
) -> None:
    cluster.create_topic("flights")
    left = next(one for one in (1, 2, 3) if one != cluster.leader_of("flights"))
    for one in {1, 2, 3} - {left}:
        cluster.hosts[one].kill()
    cluster.advance(10_000)
    request = ElectLeadersRequest(
        election_type=1,
        topic_partitions=[TopicPartitions(topic="flights", partitions=[0])],
        timeout_ms=1_000,
    )
    answer = cluster.ask(left, request, ElectLeadersResponse, 2)
    assert answer.error_code == 0
    (result,) = answer.replica_election_results[0].partition_result
    assert result.error_code == Error.ELIGIBLE_LEADERS_NOT_AVAILABLE
    assert "strandline partition survivors flights 0" in (result.error_message or "")
