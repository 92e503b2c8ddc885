"""Every broker applies and reports the defaults of keys that come from the placement policy.

Source: docs/decisions/0033-voters-leave-by-policy.md."""

import json

import pytest
from tests.broker.broker_world import BrokerWorld

from strandline.config.effective import ConfigSource
from strandline.controller.commands import TopicResult, TopicResults
from strandline.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from strandline.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)

KEY, DEFAULT_KEY = "voters.shrink.enable", "default.voters.shrink.enable"
OWN, OF_CLUSTER = "confluent.placement.constraints", "confluent.log.placement.constraints"


def constraints(promotion: str | None = None, *, observers: bool = True, version: int = 2) -> str:
    document: dict[str, object] = {
        "version": version,
        "replicas": [{"count": 2, "constraints": {"rack": "west"}}],
    }
    if observers:
        document["observers"] = [{"count": 1, "constraints": {"rack": "east"}}]
    if promotion is not None:
        document["observerPromotionPolicy"] = promotion
    return json.dumps(document)


def in_force(world: BrokerWorld) -> tuple[bool, str, ConfigSource]:
    """What the broker goes by, what it tells, and whence that is said to come."""
    topic = world.cluster.topics["t"]
    goes_by = world.services.topic_configs.of(topic, world.cluster).voters_shrink_enable
    asked = DescribeConfigsResource(resource_type=2, resource_name="t", configuration_keys=[KEY])
    answer = world.ask(DescribeConfigsRequest([asked]), DescribeConfigsResponse, 4)
    (row,) = answer.results[0].configs
    assert row.value is not None
    return goes_by, row.value, ConfigSource(row.config_source)


def make(world: BrokerWorld, own: dict[str, str], of_cluster: dict[str, str]) -> None:
    world.cluster.cluster_configs.update(of_cluster)
    world.add_topic("t", **own)


@pytest.mark.parametrize(
    ("own", "of_cluster"),
    [
        ({OWN: constraints()}, {}),
        ({OWN: constraints("leader-is-observer")}, {}),
        ({OWN: constraints(version=1)}, {}),
        ({}, {OF_CLUSTER: constraints("under-replicated")}),
    ],
)
def test_a_policy_with_a_promotion_lets_voters_leave(
    world: BrokerWorld, own: dict[str, str], of_cluster: dict[str, str]
) -> None:
    make(world, own, of_cluster)
    assert in_force(world) == (True, "true", ConfigSource.DEFAULT)


@pytest.mark.parametrize(
    ("own", "of_cluster"),
    [
        ({}, {}),
        ({OWN: constraints(observers=False)}, {}),
        ({OWN: constraints(observers=False)}, {OF_CLUSTER: constraints()}),
        ({OWN: "nothing that can be read"}, {}),
        ({"placement.policy": '{"survive":["1 broker"]}'}, {}),
    ],
)
def test_no_other_policy_does(
    world: BrokerWorld, own: dict[str, str], of_cluster: dict[str, str]
) -> None:
    make(world, own, of_cluster)
    assert in_force(world) == (False, "false", ConfigSource.DEFAULT)


def test_what_is_set_wins_the_topic_s_before_the_cluster_s(world: BrokerWorld) -> None:
    make(world, {OWN: constraints()}, {DEFAULT_KEY: "false"})
    assert in_force(world) == (False, "false", ConfigSource.CLUSTER)
    world.cluster.topics["t"].configs[KEY] = "true"
    world.cluster.version += 1
    assert in_force(world) == (True, "true", ConfigSource.TOPIC)
    world.cluster.cluster_configs.clear()
    world.cluster.topics["t"].configs[KEY] = "false"
    world.cluster.version += 1
    assert in_force(world) == (False, "false", ConfigSource.TOPIC)


def test_another_policy_brings_another_default(world: BrokerWorld) -> None:
    make(world, {OWN: constraints(observers=False)}, {})
    assert in_force(world)[0] is False
    world.cluster.topics["t"].configs[OWN] = constraints()
    world.cluster.version += 1
    assert in_force(world)[0] is True


def test_who_creates_a_topic_is_told_what_is_in_force(world: BrokerWorld) -> None:
    make(world, {OWN: constraints()}, {})
    topic = world.cluster.topics["t"]
    world.controller.answers.append(TopicResults((TopicResult(name="t", id=topic.id),)))
    asked = CreateTopicsRequest([CreatableTopic(name="t")], timeout_ms=1_000)
    answer = world.ask(asked, CreateTopicsResponse, 5)
    assert answer.topics[0].configs is not None
    (row,) = (one for one in answer.topics[0].configs if one.name == KEY)
    assert (row.value, row.config_source) == ("true", ConfigSource.DEFAULT)
