"""Topics are created each for itself, with legal names, sound counts and known configuration."""

import pytest
from tests.controller.controller_world import World, brokers

from strandline.controller.commands import (
    CreateTopics,
    DeleteTopics,
    EnsureInternalTopic,
    NewTopic,
    TopicResults,
    TopicToDelete,
)
from strandline.controller.names import OFFSETS_TOPIC
from strandline.model.ids import BrokerId


def test_a_topic_gets_its_partitions_a_group_each_and_an_id() -> None:
    world = World()
    result = world.create_one(partitions=6, replication_factor=5)
    assert (result.error_code, result.partitions, result.replication_factor) == (0, 6, 5)
    topic = world.state.cluster.topics["flights"]
    assert topic.id == result.id
    assert world.state.cluster.topic_names[topic.id] == "flights"
    assert [partition.index for partition in topic.partitions] == list(range(6))
    assert [partition.group for partition in topic.partitions] == list(range(1, 7))
    assert all(sorted(p.replicas) == [1, 2, 3, 4, 5] for p in topic.partitions)


def test_groups_are_never_used_twice() -> None:
    world = World()
    first = world.create_one("a")
    world.run(DeleteTopics((TopicToDelete("a"),)))
    world.create_one("b")
    groups = [partition.group for partition in world.state.cluster.topics["b"].partitions]
    assert groups == list(range(7, 13))
    assert first.id not in world.state.cluster.topic_names


def test_what_is_left_open_comes_from_the_cluster_configuration() -> None:
    world = World()
    world.state.cluster.cluster_configs["num.partitions"] = "4"
    (result,) = world.create(NewTopic(name="plain"))
    assert (result.partitions, result.replication_factor) == (4, 3)


def test_the_default_replication_factor_is_cut_to_the_brokers_there_are() -> None:
    world = World(("east", "west"))
    (result,) = world.create(NewTopic(name="plain"))
    assert result.replication_factor == 2


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "a/b", ".", "..", "", "a\0b", "a\nb", "ähre", "x" * 250, "a b", "a%2f"],
)
def test_illegal_names_are_refused(name: str) -> None:
    world = World()
    result = world.create_one(name)
    assert result.error_code == 17
    assert result.message is not None and "\n" not in result.message
    assert not world.state.cluster.topics


def test_names_that_differ_only_in_dots_and_underscores_collide() -> None:
    world = World()
    assert world.create_one("x.a_b").error_code == 0
    for name in ("x_a.b", "x.a.b", "x_a_b"):
        result = world.create_one(name)
        assert result.error_code == 17
        assert result.message == f"Topic '{name}' collides with existing topic: x.a_b"
    assert world.create_one("x.a_b").error_code == 36
    assert world.create_one("x-a-b").error_code == 0
    assert world.create_one("x.a_c").error_code == 0
    world.run(DeleteTopics((TopicToDelete("x.a_b"),)))
    assert world.create_one("x_a.b").error_code == 0


def test_names_of_one_request_do_not_collide() -> None:
    """As in Kafka, which compares each with the topics that there are."""
    world = World()
    assert world.create_one("p.q.r").error_code == 0
    names = ("r.s", "r_s", "p_q.r", "p.q_r")
    results = world.create(*(NewTopic(name=one) for one in names))
    assert [one.error_code for one in results] == [0, 0, 17, 17]
    assert world.create_one("r.s").error_code == 36


def test_no_name_stands_in_the_way_of_the_brokers_own_topic() -> None:
    world = World()
    result = world.create_one("__consumer.offsets")
    assert result.error_code == 17
    assert result.message == (
        "Topic '__consumer.offsets' collides with existing topic: __consumer_offsets"
    )
    assert world.create_one("_-consumer.offsets").error_code == 0


def test_the_longest_legal_name_is_taken() -> None:
    assert World().create_one("x" * 249).error_code == 0


def test_a_topic_that_exists_is_not_created_again() -> None:
    world = World()
    world.create_one()
    assert world.create_one().error_code == 36


@pytest.mark.parametrize("partitions", [0, -9, 2_000_000_000, 10_001])
def test_impossible_partition_counts_are_refused(partitions: int) -> None:
    assert World().create_one(partitions=partitions).error_code == 37


@pytest.mark.parametrize("factor", [0, -9, 6, 30_000])
def test_impossible_replication_factors_are_refused(factor: int) -> None:
    result = World().create_one(replication_factor=factor)
    assert result.error_code == 38


def test_each_topic_answers_for_itself() -> None:
    world = World()
    good, bad, twice = world.create(
        NewTopic(name="good"), NewTopic(name="b/d"), NewTopic(name="twice"), NewTopic(name="twice")
    )
    assert (good.error_code, bad.error_code, twice.error_code) == (0, 17, 42)
    assert list(world.state.cluster.topics) == ["good"]


def test_topics_of_one_request_share_groups_and_leaders_fairly() -> None:
    world = World()
    world.create(*(NewTopic(name=f"t{i}", partitions=1, replication_factor=3) for i in range(5)))
    partitions = [topic.partitions[0] for topic in world.state.cluster.topics.values()]
    assert sorted(partition.replicas[0] for partition in partitions) == [1, 2, 3, 4, 5]
    assert len({partition.group for partition in partitions}) == 5


def test_one_request_cannot_create_without_bound() -> None:
    results = World().create(
        *(NewTopic(name=f"t{i}", partitions=4_000, replication_factor=1) for i in range(4))
    )
    assert [result.error_code for result in results] == [0, 0, 44, 44]


def test_validate_only_answers_and_changes_nothing() -> None:
    world = World()
    good, bad = world.create(NewTopic(name="good"), NewTopic(name=".."), validate_only=True)
    assert (good.error_code, bad.error_code) == (0, 17)
    assert not world.state.cluster.topics


def test_a_manual_assignment_is_taken_as_it_is() -> None:
    world = World()
    rows = ((1, brokers(3, 1)), (0, brokers(5, 2)))
    (result,) = world.create(NewTopic(name="manual", assignments=rows))
    assert (result.error_code, result.partitions, result.replication_factor) == (0, 2, 2)
    replicas = [partition.replicas for partition in world.state.cluster.topics["manual"].partitions]
    assert replicas == [(5, 2), (3, 1)]


@pytest.mark.parametrize(
    "rows",
    [
        ((0, brokers(1, 9)),),
        ((0, brokers(1, 1)),),
        ((0, ()),),
        ((1, brokers(1)),),
        ((0, brokers(1)), (0, brokers(2))),
        ((0, brokers(1, 2)), (1, brokers(1))),
    ],
    ids=["unknown", "twice", "empty", "gap", "partition twice", "uneven"],
)
def test_unsound_manual_assignments_are_refused(
    rows: tuple[tuple[int, tuple[BrokerId, ...]], ...],
) -> None:
    (result,) = World().create(NewTopic(name="manual", assignments=rows))
    assert result.error_code == 39


def test_a_manual_assignment_together_with_counts_is_refused() -> None:
    (result,) = World().create(
        NewTopic(name="manual", partitions=1, assignments=((0, brokers(1)),))
    )
    assert result.error_code == 42


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("retention.mss", "1"),
        ("retention.ms", "soon"),
        ("cleanup.policy", "burn"),
        ("retention.ms", None),
        ("cleanup.policy", "x" * 5000),
    ],
)
def test_unknown_and_unsound_configuration_is_refused(key: str, value: str | None) -> None:
    (result,) = World().create(NewTopic(name="configured", configs=((key, value),)))
    assert result.error_code == 40
    assert result.message is not None and len(result.message) < 300


def test_configuration_is_kept_on_the_topic() -> None:
    world = World()
    world.create(NewTopic(name="configured", configs=(("retention.ms", " 60000 "),)))
    assert world.state.cluster.topics["configured"].configs == {"retention.ms": "60000"}


def test_brokers_that_are_down_get_replicas_only_when_others_are_too_few() -> None:
    world = World()
    world.alive -= {BrokerId(1), BrokerId(3)}
    world.create_one("three", replication_factor=3)
    world.create_one("five", replication_factor=5)
    topics = world.state.cluster.topics
    assert all(sorted(p.replicas) == [2, 4, 5] for p in topics["three"].partitions)
    assert all(p.replicas[0] in (2, 4, 5) for p in topics["five"].partitions)


def test_a_topic_whose_majority_would_be_down_is_refused() -> None:
    world = World()
    world.alive -= {BrokerId(1), BrokerId(3), BrokerId(5)}
    result = world.create_one(replication_factor=5)
    assert result.error_code == 38
    assert result.message is not None and "2 of 5 are" in result.message


def test_clients_cannot_create_the_topics_of_the_brokers() -> None:
    (result,) = World().create(NewTopic(name=OFFSETS_TOPIC))
    assert result.error_code == 17


def test_the_offsets_topic_is_created_once_compacted_as_the_cluster_says() -> None:
    world = World(("east", "west"))
    first = world.run(EnsureInternalTopic(OFFSETS_TOPIC))
    assert isinstance(first, TopicResults)
    assert (first.topics[0].partitions, first.topics[0].replication_factor) == (50, 2)
    assert world.state.cluster.topics[OFFSETS_TOPIC].configs["cleanup.policy"] == "compact"
    again = world.decide(EnsureInternalTopic(OFFSETS_TOPIC))
    assert (again.answer, again.records) == (first, ())
    (by_a_client,) = world.create(NewTopic(name=OFFSETS_TOPIC))
    assert by_a_client.error_code == 36


def test_only_known_internal_topics_can_be_ensured() -> None:
    answer = World().run(EnsureInternalTopic("anything"))
    assert answer.error_code == 17


def test_no_brokers_means_no_topics() -> None:
    answer = World(()).run(CreateTopics((NewTopic(name="early"),)))
    assert isinstance(answer, TopicResults)
    assert answer.topics[0].error_code == 38
