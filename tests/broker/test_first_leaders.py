"""A new topic's first leader comes within a few round trips, and no election time-out passes.

Source: design sections 3 and 5; decision 0012."""

import pytest
from tests.broker.cluster_world import ClusterWorld

from strandline.controller.commands import CreateTopics, NewTopic, TopicResults
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from strandline.replication.host.early_appends import EarlyAppends

SOON_MS = 100
"""Ten times what it takes; the shortest election time-out is longer."""
ELECTION_TIMEOUT_MS = 500


def controller_of(world: ClusterWorld) -> int:
    return next(one for one in world.hosts if world.controller(one).is_leader)


def first_leader_ms(world: ClusterWorld, *replicas: int) -> int:
    """How long the first leader of a new topic with these replicas takes."""
    name = "new-" + "-".join(map(str, replicas))
    topic = NewTopic(
        name=name,
        partitions=-1,
        replication_factor=-1,
        assignments=((0, tuple(map(BrokerId, replicas))),),
    )
    begun_us = world.scheduler.now_us
    answer = world.submit(CreateTopics((topic,)), at=controller_of(world))
    assert isinstance(answer, TopicResults)
    assert answer.topics[0].error_code == 0, answer
    world.until(lambda: bool(world.leader_of(name)))
    return (world.scheduler.now_us - begun_us) // 1_000


@pytest.mark.parametrize("turn", range(3))
def test_the_first_replica_leads_soon_wherever_it_is(cluster: ClusterWorld, turn: int) -> None:
    controller = controller_of(cluster)
    first, *others = [(controller + turn + at - 1) % 3 + 1 for at in range(3)]
    assert first_leader_ms(cluster, first, *others) < SOON_MS
    assert cluster.leader_of(f"new-{first}-{others[0]}-{others[1]}") == first


def test_without_a_word_of_the_voters_the_controllers_own_broker_waits_for_its_timer(
    cluster: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EarlyAppends, "on_opened", lambda *_: None)
    controller = controller_of(cluster)
    others = [one for one in cluster.hosts if one != controller]
    assert first_leader_ms(cluster, controller, *others) > ELECTION_TIMEOUT_MS


def test_where_the_first_replica_is_down_the_next_one_leads_soon(cluster: ClusterWorld) -> None:
    controller = controller_of(cluster)
    down, other = [one for one in cluster.hosts if one != controller]
    cluster.hosts[down].kill()
    cluster.until(
        lambda: (
            controller_of(cluster) == controller
            and not any(
                cluster.broker(one).replication.is_peer_alive(BrokerId(down))
                for one in (controller, other)
            )
        ),
        every_ms=100,
    )
    assert first_leader_ms(cluster, down, other, controller) < SOON_MS
    assert first_leader_ms(cluster, down, controller, other) < SOON_MS


def test_metadata_of_a_topic_that_it_creates_names_all_leaders(cluster: ClusterWorld) -> None:
    for number in range(6):
        name = f"made-{number}"
        request = MetadataRequest([MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
        begun_us = cluster.scheduler.now_us
        answer = cluster.ask(1 + number % 3, request, MetadataResponse, 12)
        (topic,) = answer.topics
        assert (topic.error_code, topic.name) == (Error.NONE, name)
        assert all(one.leader_id > 0 and one.error_code == 0 for one in topic.partitions)
        assert cluster.scheduler.now_us - begun_us < SOON_MS * 1_000
