"""A topic has tiered storage only where a bucket may hold its data (KIP-405, KIP-950)."""

import pytest
from tests.controller.controller_world import World, changes

from strandline.controller.commands import AlterConfigs, NewTopic, ResourceResults
from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId

TOPIC, SET, DELETE = 2, 0, 1
INVALID_CONFIG = 40
ENABLE = ("remote.storage.enable", "true")
NOT_WEST = '{"residency":{"deny":[{"label":"region","op":"in","values":["west"]}]}}'
WITH_OBJECTS = "remote.storage.enable cannot become false while the topic's objects stay"


@pytest.fixture
def world() -> World:
    made = World()
    made.buckets = {"west": Labels(region="west")}
    return made


def create(world: World, *configs: tuple[str, str]) -> tuple[int, str]:
    (result,) = world.create(NewTopic(name="flights", partitions=1, configs=configs))
    return result.error_code, result.message or ""


def alter(world: World, *rows: tuple[str, int, str | None]) -> tuple[int, str]:
    answer = world.run(AlterConfigs((changes(TOPIC, "flights", *rows),), False))
    assert isinstance(answer, ResourceResults)
    (result,) = answer.resources
    return result.error_code, result.message or ""


def test_a_cluster_without_buckets_refuses_it() -> None:
    code, message = create(World(), ENABLE)
    assert code == INVALID_CONFIG
    assert message == (
        "remote.storage.enable cannot be true: this cluster has no tiered storage; give [tiered] "
        "buckets in the brokers' files"
    )
    assert create(World(), ("remote.storage.enable", "false")) == (0, "")


def test_a_cluster_with_a_bucket_takes_it(world: World) -> None:
    assert create(world, ENABLE) == (0, "")


def test_a_policy_that_allows_no_bucket_refuses_it(world: World) -> None:
    code, message = create(world, ENABLE, ("placement.policy", NOT_WEST))
    assert code == INVALID_CONFIG
    assert "allows none of the buckets west" in message


def test_it_is_refused_to_a_topic_that_is_there(world: World) -> None:
    world.buckets = {}
    create(world)
    code, message = alter(world, (ENABLE[0], SET, "true"))
    assert (code, "no tiered storage" in message) == (INVALID_CONFIG, True)
    world.buckets = {"west": Labels(region="west")}
    assert alter(world, (ENABLE[0], SET, "true"))[0] == 0


def test_a_policy_may_not_take_the_last_bucket_away(world: World) -> None:
    create(world, ENABLE)
    code, message = alter(world, ("placement.policy", SET, NOT_WEST))
    assert (code, "allows none of the buckets" in message) == (INVALID_CONFIG, True)


def test_other_keys_can_be_changed_while_buckets_are_not_configured(world: World) -> None:
    """A controller whose file lacks the buckets must not block a longer retention."""
    create(world, ENABLE)
    world.buckets = {}
    assert alter(world, ("retention.ms", SET, "-1"))[0] == 0


def test_a_broker_of_an_earlier_release_refuses_it(world: World) -> None:
    world.without_tiering = {BrokerId(3): True}
    code, message = create(world, ENABLE)
    assert code == INVALID_CONFIG
    assert message == (
        "remote.storage.enable cannot be true: the release of broker 3 has no tiered storage; "
        "upgrade it first"
    )
    world.without_tiering = {}
    assert create(world, ENABLE) == (0, "")


def test_first_tiered_topic_needs_the_word_of_every_broker(world: World) -> None:
    world.without_tiering = {BrokerId(2): False}
    code, message = create(world, ENABLE)
    assert (code, "has not heard broker 2" in message) == (INVALID_CONFIG, True)
    world.without_tiering = {}
    assert create(world, ENABLE) == (0, "")
    world.without_tiering = {BrokerId(2): False}
    (result,) = world.create(NewTopic(name="later", partitions=1, configs=(ENABLE,)))
    assert result.error_code == 0


@pytest.mark.parametrize("operation", [SET, DELETE])
def test_it_ends_only_together_with_its_objects(world: World, operation: int) -> None:
    create(world, ENABLE)
    value = "false" if operation == SET else None
    code, message = alter(world, (ENABLE[0], operation, value))
    assert (code, message.startswith(WITH_OBJECTS)) == (INVALID_CONFIG, True)
    delete = ("remote.log.delete.on.disable", SET, "true")
    assert alter(world, (ENABLE[0], operation, value), delete) == (0, "")


def test_contradictions_are_refused(world: World) -> None:
    code, message = create(world, ENABLE, ("local.retention.ms", "-1"))
    assert (code, "must not be above retention.ms" in message) == (INVALID_CONFIG, True)
