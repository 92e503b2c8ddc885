"""Configuration changes key by key; what no table knows is refused with the reason."""

import pytest
from tests.controller.controller_world import World, changes

from strandline.controller.commands import (
    AlterConfigs,
    NewTopic,
    ResourceChanges,
    ResourceResults,
)
from strandline.model.ids import BrokerId

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)


def alter(world: World, *resources: ResourceChanges, validate_only: bool = False) -> list[int]:
    answer = world.run(AlterConfigs(resources, validate_only))
    assert isinstance(answer, ResourceResults)
    return [result.error_code for result in answer.resources]


@pytest.fixture
def world() -> World:
    made = World()
    made.create_one()
    return made


def configs(world: World) -> dict[str, str]:
    return world.state.cluster.topics["flights"].configs


def test_a_topic_key_is_set_and_removed(world: World) -> None:
    assert alter(world, changes(TOPIC, "flights", ("retention.ms", SET, "1000"))) == [0]
    assert configs(world) == {"retention.ms": "1000"}
    assert alter(world, changes(TOPIC, "flights", ("retention.ms", DELETE, None))) == [0]
    assert configs(world) == {}


def test_a_list_is_appended_to_from_what_is_in_force(world: World) -> None:
    assert alter(world, changes(TOPIC, "flights", ("cleanup.policy", APPEND, "compact"))) == [0]
    assert configs(world) == {"cleanup.policy": "delete,compact"}
    assert alter(world, changes(TOPIC, "flights", ("cleanup.policy", SUBTRACT, "delete"))) == [0]
    assert configs(world) == {"cleanup.policy": "compact"}


def test_a_list_inherits_from_the_cluster_before_it_is_changed(world: World) -> None:
    alter(world, changes(BROKER, "", ("log.cleanup.policy", SET, "compact")))
    alter(world, changes(TOPIC, "flights", ("cleanup.policy", APPEND, "delete")))
    assert configs(world) == {"cleanup.policy": "compact,delete"}


def test_a_list_may_become_empty(world: World) -> None:
    """A topic without a policy keeps everything, as in Kafka (KIP-1161)."""
    assert alter(world, changes(TOPIC, "flights", ("cleanup.policy", SUBTRACT, "delete"))) == [0]
    assert configs(world) == {"cleanup.policy": ""}
    assert alter(world, changes(TOPIC, "flights", ("cleanup.policy", APPEND, "compact"))) == [0]
    assert configs(world) == {"cleanup.policy": "compact"}


def test_only_lists_can_be_appended_to(world: World) -> None:
    assert alter(world, changes(TOPIC, "flights", ("retention.ms", APPEND, "1"))) == [40]


@pytest.mark.parametrize(
    ("row", "code"),
    [
        (("retention.mss", SET, "1"), 40),
        (("retention.mss", DELETE, None), 40),
        (("retention.ms", SET, "soon"), 40),
        (("retention.ms", SET, None), 42),
        (("retention.ms", 7, "1"), 42),
        (("retention.ms", SET, "1" * 5000), 40),
    ],
)
def test_unsound_changes_are_refused(
    world: World, row: tuple[str, int, str | None], code: int
) -> None:
    assert alter(world, changes(TOPIC, "flights", row)) == [code]
    assert configs(world) == {}


def test_a_misspelt_name_is_refused_with_the_nearest_one(world: World) -> None:
    answer = world.run(AlterConfigs((changes(TOPIC, "flights", ("retention.mss", SET, "1")),)))
    assert isinstance(answer, ResourceResults)
    assert "did you mean retention.ms?" in (answer.resources[0].message or "")


def test_a_resource_changes_as_a_whole_or_not_at_all(world: World) -> None:
    rows = (("retention.ms", SET, "1000"), ("segment.bytes", SET, "never"))
    assert alter(world, changes(TOPIC, "flights", *rows)) == [40]
    assert configs(world) == {}


def test_each_resource_answers_for_itself(world: World) -> None:
    resources = (
        changes(TOPIC, "flights", ("retention.ms", SET, "1000")),
        changes(TOPIC, "gone", ("retention.ms", SET, "1000")),
        changes(TOPIC, "b/d", ("retention.ms", SET, "1000")),
        changes(BROKER, "", ("num.partitions", SET, "3")),
        changes(BROKER, "1", ("num.partitions", SET, "3")),
        changes(8, "1", ("anything", SET, "3")),
        changes(TOPIC, "", ("retention.ms", SET, "1000")),
    )
    assert alter(world, *resources) == [0, 3, 17, 0, 40, 42, 42]
    assert configs(world) == {"retention.ms": "1000"}
    assert world.state.cluster.cluster_configs == {"num.partitions": "3"}


def test_a_key_or_a_resource_named_twice_is_refused(world: World) -> None:
    row = ("retention.ms", SET, "1000")
    assert alter(world, changes(TOPIC, "flights", row, row)) == [42]
    assert alter(world, changes(TOPIC, "flights", row), changes(TOPIC, "flights", row)) == [42]


def test_changes_can_be_tried_without_doing_them(world: World) -> None:
    row = changes(TOPIC, "flights", ("retention.ms", SET, "1000"))
    assert alter(world, row, validate_only=True) == [0]
    assert configs(world) == {}


def test_what_kafkas_reassignment_tool_sets_is_set_and_taken_back(world: World) -> None:
    """`kafka-reassign-partitions --throttle`, and what its `--verify` removes in the end."""
    rates = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
    others = ("replica.alter.log.dirs.io.max.bytes.per.second",)
    replicas = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
    of_brokers = [(name, SET, "1000000") for name in rates]
    of_topics = [(name, SET, "0:1,0:2") for name in replicas]
    resources = [changes(BROKER, one, *of_brokers) for one in ("1", "2")]
    assert alter(world, *resources, changes(TOPIC, "flights", *of_topics)) == [0, 0, 0]
    assert world.state.cluster.broker_configs[BrokerId(2)] == dict.fromkeys(rates, "1000000")
    removed = [(name, DELETE, None) for name in rates + others]
    resources = [changes(BROKER, one, *removed) for one in ("1", "2")]
    cleared = changes(TOPIC, "flights", *((name, DELETE, None) for name in replicas))
    assert alter(world, *resources, cleared) == [0, 0, 0]
    assert world.state.cluster.broker_configs[BrokerId(2)] == {}
    assert configs(world) == {}
    assert alter(world, changes(BROKER, "1", (rates[0], SET, "-1"))) == [42]


def was_compacted(world: World, topic: str) -> bool:
    """As those know it who replay the log."""
    return world.replayed().cluster.topics[topic].was_compacted


def test_that_a_topic_was_compacted_is_never_forgotten(world: World) -> None:
    """What its policy let go of stays away."""
    assert not was_compacted(world, "flights")
    alter(world, changes(TOPIC, "flights", ("cleanup.policy", SET, "compact")))
    alter(world, changes(TOPIC, "flights", ("cleanup.policy", SET, "delete")))
    assert was_compacted(world, "flights")
    world.create(NewTopic(name="states", configs=(("cleanup.policy", "compact,delete"),)))
    assert was_compacted(world, "states")


def test_a_default_of_the_cluster_compacts_whatever_has_no_policy_of_its_own(world: World) -> None:
    world.create(NewTopic(name="own", configs=(("cleanup.policy", "delete"),)))
    alter(world, changes(BROKER, "", ("log.cleanup.policy", SET, "compact")))
    world.create(NewTopic(name="late"))
    alter(world, changes(BROKER, "", ("log.cleanup.policy", DELETE, None)))
    world.create(NewTopic(name="later"))
    found = {topic: was_compacted(world, topic) for topic in ("flights", "own", "late", "later")}
    assert found == {"flights": True, "own": False, "late": True, "later": False}
    alter(world, changes(BROKER, "", ("log.cleanup.policy", SET, "compact")))
    alter(world, changes(TOPIC, "own", ("cleanup.policy", DELETE, None)))
    assert was_compacted(world, "own")


def replace_all(world: World, type_: int, name: str, *rows: tuple[str, int, str | None]) -> int:
    resource = ResourceChanges(type_, name, changes(type_, name, *rows).changes, replaces=True)
    (code,) = alter(world, resource)
    return code


def test_a_replacement_resets_what_it_does_not_name(world: World) -> None:
    rows = (("retention.ms", SET, "1000"), ("file.delete.delay.ms", SET, "1"))
    assert alter(world, changes(TOPIC, "flights", *rows)) == [0]
    assert replace_all(world, TOPIC, "flights", ("segment.ms", SET, "2000")) == 0
    assert configs(world) == {"segment.ms": "2000"}
    assert replace_all(world, TOPIC, "flights") == 0
    assert configs(world) == {}


def test_a_replacement_that_is_refused_changes_nothing(world: World) -> None:
    assert alter(world, changes(TOPIC, "flights", ("retention.ms", SET, "1000"))) == [0]
    assert replace_all(world, TOPIC, "flights", ("segment.ms", SET, "never")) == 40
    assert configs(world) == {"retention.ms": "1000"}


def test_a_replacement_leaves_keys_that_kafka_does_not_have(world: World) -> None:
    """Its client cannot know them, and without its policy a topic would move."""
    policy = '{"survive":["1 broker"]}'
    assert alter(world, changes(TOPIC, "flights", ("placement.policy", SET, policy))) == [0]
    before = configs(world)["placement.policy"]
    assert replace_all(world, TOPIC, "flights", ("retention.ms", SET, "1000")) == 0
    assert configs(world) == {"placement.policy": before, "retention.ms": "1000"}
    until = ("broker.maintenance.until.ms", SET, "-1")
    rate = ("leader.replication.throttled.rate", SET, "1")
    assert alter(world, changes(BROKER, "1", until, rate)) == [0]
    assert replace_all(world, BROKER, "1") == 0
    own = world.state.cluster.broker_configs[BrokerId(1)]
    assert own == {"broker.maintenance.until.ms": "-1"}


def test_a_key_of_kafkas_that_does_nothing_here_is_stored(world: World) -> None:
    for type_, name in ((BROKER, ""), (BROKER, "1")):
        assert alter(world, changes(type_, name, ("num.io.threads", SET, "16"))) == [0]
        assert alter(world, changes(type_, name, ("num.io.threads", SET, "0"))) == [42]
    assert world.state.cluster.cluster_configs == {"num.io.threads": "16"}
    assert world.state.cluster.broker_configs[BrokerId(1)] == {"num.io.threads": "16"}


@pytest.mark.parametrize("broker", ["", "1"])
@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("socket.request.max.bytes", "[limits] request_bytes_max"),
        ("listeners", "[listener]"),
        ("ssl.keystore.location", "The TLS of a listener is in the broker's file"),
        ("sasl.jaas.config", "Logins are in the broker's file"),
        ("authorizer.class.name", "Rules of access are in the broker's file"),
    ],
)
def test_a_key_that_a_file_decides_or_that_would_protect_nothing_is_refused(
    world: World, broker: str, key: str, told: str
) -> None:
    answer = world.run(AlterConfigs((changes(BROKER, broker, (key, SET, "1")),)))
    assert isinstance(answer, ResourceResults)
    (result,) = answer.resources
    assert result.error_code == 42
    assert told in (result.message or "") and key in (result.message or "")


def test_a_key_of_the_whole_cluster_is_not_set_on_one_broker(world: World) -> None:
    answer = world.run(AlterConfigs((changes(BROKER, "1", ("log.retention.ms", SET, "1")),)))
    assert isinstance(answer, ResourceResults)
    assert "on the broker default" in (answer.resources[0].message or "")


def test_lags_of_compaction_that_contradict_each_other_are_refused(world: World) -> None:
    low, high = ("min.compaction.lag.ms", SET, "10"), ("max.compaction.lag.ms", SET, "9")
    assert alter(world, changes(TOPIC, "flights", low)) == [0]
    assert alter(world, changes(TOPIC, "flights", high)) == [40]
    assert alter(world, changes(TOPIC, "flights", high, ("min.compaction.lag.ms", SET, "9"))) == [0]
    of_all = ("log.cleaner.max.compaction.lag.ms", SET, "9")
    assert alter(world, changes(BROKER, "", of_all)) == [0]
    assert alter(world, changes(BROKER, "", ("log.cleaner.min.compaction.lag.ms", SET, "10"))) == [
        42
    ]
    (result,) = world.create(NewTopic(name="x", configs=(("min.compaction.lag.ms", "10"),)))
    assert result.error_code == 40
