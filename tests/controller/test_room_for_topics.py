"""New partitions go where there is room: not on nearly full disks while others will do, and never
on full ones.

Source: docs/decisions/0010-the-balancer.md ("Room")."""

from collections import Counter

import pytest
from tests.controller.controller_world import World, changes

from strandline.controller.commands import (
    AlterConfigs,
    CreatePartitions,
    EnsureInternalTopic,
    MorePartitions,
    NewTopic,
    ResourceResults,
    TopicResult,
    TopicResults,
)
from strandline.controller.names import OFFSETS_TOPIC
from strandline.model.ids import BrokerId

INVALID_REPLICATION_FACTOR, POLICY_VIOLATION = 38, 44
ANYWHERE = '{"rules":[{"count":%d}]}'
SURVIVE_REGION = '{"survive":["region"]}'


def create(
    world: World, *, policy: str = "", replicas: int = 3, name: str = "flights"
) -> TopicResult:
    """Six partitions, by counts or by a policy."""
    configs = (("placement.policy", policy),) if policy else ()
    factor = -1 if policy else replicas
    (result,) = world.create(
        NewTopic(name=name, partitions=6, replication_factor=factor, configs=configs)
    )
    return result


def held(world: World, topic: str = "flights") -> Counter[BrokerId]:
    """{broker: its replicas of the topic}"""
    partitions = world.state.cluster.topics[topic].partitions
    return Counter(broker for one in partitions for broker in one.replicas)


def set_mark(world: World, key: str, value: str) -> None:
    answer = world.run(AlterConfigs((changes(4, "", (key, 0, value)),)))
    assert isinstance(answer, ResourceResults) and not answer.resources[0].error_code


@pytest.mark.parametrize("policy", ["", ANYWHERE % 3])
def test_a_broker_whose_disk_is_nearly_full_gets_nothing_while_others_will_do(policy: str) -> None:
    world = World()
    world.fill(b1=85, b2=84, b3=10, b4=90)
    assert create(world, policy=policy).error_code == 0
    assert held(world) == {2: 6, 3: 6, 5: 6}
    set_mark(world, "balancer.disk.high.percent", "91")
    assert create(world, policy=policy, name="more").error_code == 0
    assert set(held(world, "more")) == {1, 2, 3, 4, 5}


@pytest.mark.parametrize("policy", ["", ANYWHERE % 4])
def test_it_gets_what_nobody_else_can_take_and_no_more(policy: str) -> None:
    world = World()
    world.fill(b1=90, b2=90, b3=10)
    assert create(world, policy=policy, replicas=4).error_code == 0
    counts = held(world)
    assert {one: counts[BrokerId(one)] for one in (3, 4, 5)} == {3: 6, 4: 6, 5: 6}
    assert counts[BrokerId(1)] + counts[BrokerId(2)] == 6


def test_a_policy_that_needs_it_has_it() -> None:
    """Brokers 1 and 2 are in the east, 3 and 4 in the west, 5 is the south."""
    world = World()
    world.fill(b1=90, b3=90, b5=90)
    assert create(world, policy=SURVIVE_REGION).error_code == 0
    assert held(world) == {2: 6, 4: 6, 5: 6}


@pytest.mark.parametrize("policy", ["", ANYWHERE % 3])
def test_who_is_down_is_worse_than_who_has_little_room(policy: str) -> None:
    world = World()
    world.alive -= {BrokerId(4), BrokerId(5)}
    world.fill(b2=90, b3=90)
    assert create(world, policy=policy).error_code == 0
    assert held(world) == {1: 6, 2: 6, 3: 6}


def test_full_disks_are_refused_by_name() -> None:
    world = World()
    world.fill(b1=99, b4=99, b5=100)
    result = create(world)
    assert result.error_code == INVALID_REPLICATION_FACTOR
    assert result.message == (
        "replication factor 3 needs as many brokers with room, but the disks of brokers 1, 4, 5 "
        "are 99 % full or fuller (placement.disk.full.percent): make room, or ask for at most 2"
    )
    result = create(world, policy=ANYWHERE % 3)
    assert result.error_code == POLICY_VIOLATION
    assert (result.message or "").endswith(
        "\nthe disks of brokers 1, 4, 5 are 99 % full or fuller (placement.disk.full.percent)"
    )
    assert create(world, replicas=2).error_code == 0
    assert held(world) == {2: 6, 3: 6}
    world.fill(b4=98)
    assert create(world, name="other").error_code == 0
    assert held(world, "other") == {2: 6, 3: 6, 4: 6}


def test_more_partitions_and_the_brokers_own_topics_go_where_there_is_room() -> None:
    world = World()
    assert create(world).error_code == 0
    before = held(world)
    world.fill(b1=90, b2=99)
    answer = world.run(CreatePartitions((MorePartitions(topic="flights", count=12),)))
    assert isinstance(answer, TopicResults) and not answer.topics[0].error_code
    world.run(EnsureInternalTopic(OFFSETS_TOPIC))
    assert held(world) - before == {3: 6, 4: 6, 5: 6}
    assert set(held(world, OFFSETS_TOPIC)) == {3, 4, 5}
    world.fill(b3=99, b4=99, b5=99)
    answer = world.run(CreatePartitions((MorePartitions(topic="flights", count=13),)))
    assert isinstance(answer, TopicResults)
    assert answer.topics[0].error_code == INVALID_REPLICATION_FACTOR
    assert "disks of brokers 2, 3, 4, 5 are" in (answer.topics[0].message or "")


def test_who_chooses_brokers_by_hand_is_not_asked_about_their_disks() -> None:
    world = World()
    world.fill(b1=99)
    assignments = ((0, (BrokerId(1), BrokerId(2))),)
    (result,) = world.create(NewTopic(name="mine", assignments=assignments))
    assert result.error_code == 0


def test_a_policy_that_is_changed_is_not_held_against_the_disks_of_today() -> None:
    world = World()
    assert create(world).error_code == 0
    world.fill(b1=99, b2=99, b3=99)
    row = changes(2, "flights", ("placement.policy", 0, SURVIVE_REGION))
    answer = world.run(AlterConfigs((row,)))
    assert isinstance(answer, ResourceResults)
    assert answer.resources[0].error_code == 0
