"""Topics are deleted by name or id, and grow; partitions never become fewer."""

from uuid import UUID

import pytest
from tests.controller.controller_world import World

from strandline.controller.commands import (
    AllocateProducerIds,
    CreatePartitions,
    DeleteTopics,
    EnsureInternalTopic,
    MorePartitions,
    ProducerIds,
    TopicResult,
    TopicResults,
    TopicToDelete,
)
from strandline.controller.names import OFFSETS_TOPIC
from strandline.model.ids import BrokerId


def delete(world: World, *topics: TopicToDelete) -> tuple[TopicResult, ...]:
    answer = world.run(DeleteTopics(topics))
    assert isinstance(answer, TopicResults)
    return answer.topics


def grow(
    world: World,
    count: int,
    *,
    topic: str = "flights",
    assignments: tuple[tuple[int, ...], ...] | None = None,
    validate_only: bool = False,
) -> TopicResult:
    chosen = assignments and tuple(tuple(BrokerId(b) for b in row) for row in assignments)
    wanted = MorePartitions(topic=topic, count=count, assignments=chosen)
    answer = world.run(CreatePartitions((wanted,), validate_only))
    assert isinstance(answer, TopicResults)
    return answer.topics[0]


@pytest.mark.parametrize("by_id", [False, True])
def test_a_deleted_topic_leaves_nothing_behind(*, by_id: bool) -> None:
    world = World()
    made = world.create_one()
    wanted = TopicToDelete(id=made.id) if by_id else TopicToDelete("flights")
    (result,) = delete(world, wanted)
    assert (result.name, result.id, result.error_code) == ("flights", made.id, 0)
    cluster = world.state.cluster
    assert not cluster.topics and not cluster.topic_names and not cluster.groups


def test_a_topic_created_anew_is_another_topic() -> None:
    world = World()
    first = world.create_one()
    delete(world, TopicToDelete("flights"))
    assert world.create_one().id != first.id


def test_unknown_topics_are_refused_by_name_and_by_id() -> None:
    by_name, by_id = delete(World(), TopicToDelete("gone"), TopicToDelete(id=UUID(int=77)))
    assert (by_name.error_code, by_id.error_code) == (3, 100)


def test_name_and_id_together_or_neither_are_refused() -> None:
    world = World()
    made = world.create_one()
    both, neither = delete(world, TopicToDelete("flights", made.id), TopicToDelete())
    assert (both.error_code, neither.error_code) == (42, 42)
    assert "flights" in world.state.cluster.topics


def test_a_topic_named_twice_is_kept() -> None:
    world = World()
    made = world.create_one()
    results = delete(world, TopicToDelete("flights"), TopicToDelete(id=made.id))
    assert [(one.error_code, one.name, one.id) for one in results] == [(42, "flights", made.id)]
    assert "flights" in world.state.cluster.topics


def test_the_topics_of_the_brokers_are_kept() -> None:
    world = World()
    world.run(EnsureInternalTopic(OFFSETS_TOPIC))
    (result,) = delete(world, TopicToDelete(OFFSETS_TOPIC))
    assert result.error_code == 42
    assert grow(world, 51, topic=OFFSETS_TOPIC).error_code == 42


def test_new_partitions_follow_the_old_ones() -> None:
    world = World()
    world.create_one(partitions=2)
    assert grow(world, 5).partitions == 5
    partitions = world.state.cluster.topics["flights"].partitions
    assert [partition.index for partition in partitions] == [0, 1, 2, 3, 4]
    assert [partition.group for partition in partitions] == [1, 2, 3, 4, 5]
    assert sorted(partition.replicas[0] for partition in partitions) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("count", [0, -1, 1, 6, 10_001])
def test_partitions_never_become_fewer_nor_too_many(count: int) -> None:
    world = World()
    world.create_one(partitions=6)
    assert grow(world, count).error_code == 37
    assert len(world.state.cluster.topics["flights"].partitions) == 6


def test_new_partitions_may_be_assigned_by_hand() -> None:
    world = World()
    world.create_one(partitions=1, replication_factor=2)
    assert grow(world, 3, assignments=((5, 1), (2, 3))).error_code == 0
    partitions = world.state.cluster.topics["flights"].partitions
    assert [partition.replicas for partition in partitions[1:]] == [(5, 1), (2, 3)]


@pytest.mark.parametrize("assignments", [((5, 1),), ((5,), (1,)), ((5, 5), (1, 2)), ((9, 1),) * 2])
def test_unsound_assignments_by_hand_are_refused(assignments: tuple[tuple[int, ...], ...]) -> None:
    world = World()
    world.create_one(partitions=1, replication_factor=2)
    assert grow(world, 3, assignments=assignments).error_code == 39


def test_growth_can_be_tried_without_doing_it() -> None:
    world = World()
    world.create_one(partitions=1)
    assert grow(world, 3, validate_only=True).error_code == 0
    assert len(world.state.cluster.topics["flights"].partitions) == 1


def test_an_unknown_topic_does_not_grow() -> None:
    assert grow(World(), 3).error_code == 3


def test_producer_ids_come_in_blocks_that_never_overlap() -> None:
    world = World()
    first = world.run(AllocateProducerIds(BrokerId(1)))
    second = world.run(AllocateProducerIds(BrokerId(2)))
    assert (first, second) == (ProducerIds(0, 1000), ProducerIds(1000, 1000))
