"""Metadata, DescribeCluster, DescribeTopicPartitions: live brokers and leaders.

Source: KIP-516, KIP-700, KIP-966; reliability reference 4 (illegal names)."""

from uuid import UUID

import pytest
from tests.broker.broker_world import OTHER, SELF, BrokerWorld, LeaderEntry

from strandline.broker.leadership.new_topics import LEADERS_WAIT_MS, NEW_TOPIC_MS
from strandline.controller.commands import CreateTopics, TopicResult, TopicResults
from strandline.controller.records import TopicCreated, TopicDeleted
from strandline.model.ids import CONTROLLER_GROUP, NO_BROKER
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from strandline.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from strandline.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

NO_OPERATIONS = -(2**31)


def names(*topics: str) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=one) for one in topics],
        allow_auto_topic_creation=False,
    )


def created(world: BrokerWorld, name: str) -> None:
    """The controller's log says that a topic was created."""
    record = TopicCreated(name=name, id=UUID(int=1), partitions=(), configs={})
    world.services.new_topics.on_applied(record)


def test_every_operation_is_allowed_for_clients_that_ask(world: BrokerWorld) -> None:
    """KIP-430; the numbers are Kafka's without an authoriser."""
    world.add_topic("t")
    request = names("t", "none")
    request.include_topic_authorized_operations = True
    request.include_cluster_authorized_operations = True
    answer = world.ask(request, MetadataResponse, 10)
    assert [one.topic_authorized_operations for one in answer.topics] == [3576] * 2
    assert answer.cluster_authorized_operations == 8096
    described = DescribeClusterRequest(include_cluster_authorized_operations=True)
    cluster = world.ask(described, DescribeClusterResponse, 2)
    assert cluster.cluster_authorized_operations == 8096
    cluster = world.ask(DescribeClusterRequest(), DescribeClusterResponse, 2)
    assert cluster.cluster_authorized_operations == NO_OPERATIONS
    pages = DescribeTopicPartitionsRequest([TopicRequest("t"), TopicRequest("none")])
    topics = world.ask(pages, DescribeTopicPartitionsResponse, 0).topics
    assert [one.topic_authorized_operations for one in topics] == [3576] * 2


@pytest.mark.parametrize("version", range(14))
def test_brokers_topics_and_leaders_in_every_version(world: BrokerWorld, version: int) -> None:
    for replica in world.add_topic("t", 2):
        replica.in_sync_now = [SELF]
    world.add_remote_topic("u")
    world.replication.leaders[CONTROLLER_GROUP] = LeaderEntry(CONTROLLER_GROUP, 9, OTHER)
    answer = world.ask(names("t", "u"), MetadataResponse, version)
    assert [(one.node_id, one.host, one.port) for one in answer.brokers] == [
        (SELF, "host-1", 9_001),
        (OTHER, "host-2", 9_002),
    ]
    if version >= 1:
        assert answer.controller_id == OTHER
        assert [one.rack for one in answer.brokers] == ["east", "west"]
    if version >= 2:
        assert answer.cluster_id == "cluster-1"
    here, there = answer.topics
    assert [one.leader_id for one in here.partitions] == [SELF, SELF]
    assert [one.partition_index for one in here.partitions] == [0, 1]
    assert [(one.leader_id, one.error_code) for one in there.partitions] == [(OTHER, 0)]
    assert here.partitions[0].replica_nodes == [SELF, OTHER]
    assert here.partitions[0].isr_nodes == [SELF]
    assert there.partitions[0].isr_nodes == [SELF, OTHER]
    if version >= 7:
        assert there.partitions[0].leader_epoch == 4
    if version >= 10:
        assert here.topic_id == world.cluster.topics["t"].id
    assert here.topic_authorized_operations == NO_OPERATIONS


def test_all_topics_are_asked_for_by_null_and_in_version_0_by_an_empty_list(
    world: BrokerWorld,
) -> None:
    world.add_topic("t")
    world.add_topic("__consumer_offsets")
    everything = world.ask(MetadataRequest(topics=None), MetadataResponse, 12)
    assert [(one.name, one.is_internal) for one in everything.topics] == [
        ("t", False),
        ("__consumer_offsets", True),
    ]
    assert len(world.ask(MetadataRequest(topics=[]), MetadataResponse, 0).topics) == 2
    assert world.ask(MetadataRequest(topics=[]), MetadataResponse, 1).topics == []


def test_a_silent_broker_is_not_listed_and_leads_nothing(world: BrokerWorld) -> None:
    world.add_remote_topic("u")
    world.replication.leaders[CONTROLLER_GROUP] = LeaderEntry(CONTROLLER_GROUP, 9, OTHER)
    world.replication.silent.add(OTHER)
    answer = world.ask(names("u"), MetadataResponse, 9)
    assert [one.node_id for one in answer.brokers] == [SELF]
    assert answer.controller_id == NO_BROKER
    (partition,) = answer.topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (Error.LEADER_NOT_AVAILABLE, NO_BROKER)
    assert partition.offline_replicas == [OTHER]
    assert partition.isr_nodes == [SELF]


def test_a_broker_that_has_hung_up_is_listed_and_leads_nothing(world: BrokerWorld) -> None:
    world.add_remote_topic("u")
    world.replication.hung_up.add(OTHER)
    answer = world.ask(names("u"), MetadataResponse, 9)
    assert [one.node_id for one in answer.brokers] == [SELF, OTHER]
    (partition,) = answer.topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (Error.LEADER_NOT_AVAILABLE, NO_BROKER)
    assert partition.isr_nodes == [SELF, OTHER]


def test_a_partition_without_a_leader_says_so(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    replica.follow(NO_BROKER, epoch=2)
    (partition,) = world.ask(names("t"), MetadataResponse, 9).topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (Error.LEADER_NOT_AVAILABLE, NO_BROKER)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("none", Error.UNKNOWN_TOPIC_OR_PARTITION),
        ("../../etc/passwd", Error.INVALID_TOPIC_EXCEPTION),
        ("a/b", Error.INVALID_TOPIC_EXCEPTION),
        (".", Error.INVALID_TOPIC_EXCEPTION),
        ("..", Error.INVALID_TOPIC_EXCEPTION),
        ("", Error.INVALID_TOPIC_EXCEPTION),
        ("nul\0", Error.INVALID_TOPIC_EXCEPTION),
        ("line\nbreak", Error.INVALID_TOPIC_EXCEPTION),
        ("naïve", Error.INVALID_TOPIC_EXCEPTION),
        ("x" * 250, Error.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_names_that_nobody_has_or_may_have_are_refused(
    world: BrokerWorld, name: str, code: Error
) -> None:
    world.cluster.cluster_configs["auto.create.topics.enable"] = "true"
    request = names(name)
    request.allow_auto_topic_creation = code is Error.INVALID_TOPIC_EXCEPTION
    (topic,) = world.ask(request, MetadataResponse, 9).topics
    assert (topic.error_code, topic.name) == (code, name)
    assert world.controller.commands == []


def test_topics_are_found_by_id(world: BrokerWorld) -> None:
    world.add_topic("t")
    known, unknown = world.cluster.topics["t"].id, UUID(int=7)
    request = MetadataRequest(
        topics=[MetadataRequestTopic(topic_id=one, name=None) for one in (known, unknown)],
        allow_auto_topic_creation=False,
    )
    found, missing = world.ask(request, MetadataResponse, 12).topics
    assert (found.name, found.error_code) == ("t", 0)
    assert (missing.name, missing.topic_id) == (None, unknown)
    assert missing.error_code == Error.UNKNOWN_TOPIC_ID


def test_a_missing_topic_is_created_where_client_and_cluster_want_it(world: BrokerWorld) -> None:
    world.cluster.cluster_configs["auto.create.topics.enable"] = "true"
    world.controller.answers.append(TopicResults(topics=(TopicResult(name="new"),)))
    request = names("new", "__consumer_offsets", "a/b")
    request.allow_auto_topic_creation = True
    creating = world.send(request, 9)
    world.advance(LEADERS_WAIT_MS)
    late = creating.answer(MetadataResponse).topics[0]  # Its record is still on its way here.
    assert late.error_code == Error.LEADER_NOT_AVAILABLE
    (command,) = world.controller.commands
    assert isinstance(command, CreateTopics)
    assert [one.name for one in command.topics] == ["new"]
    unreachable = world.ask(request, MetadataResponse, 9)
    assert unreachable.topics[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert len(unreachable.brokers) == 2
    world.cluster.cluster_configs["auto.create.topics.enable"] = "false"
    assert world.ask(request, MetadataResponse, 9).topics[0].error_code == 3
    assert len(world.controller.commands) == 2


def test_a_refused_name_of_a_new_topic_is_final(world: BrokerWorld) -> None:
    world.cluster.cluster_configs["auto.create.topics.enable"] = "true"
    for code, answered in (
        (Error.INVALID_TOPIC_EXCEPTION, Error.INVALID_TOPIC_EXCEPTION),
        (Error.INVALID_REPLICATION_FACTOR, Error.UNKNOWN_TOPIC_OR_PARTITION),
    ):
        refused = TopicResult(name="new", error_code=code)
        world.controller.answers.append(TopicResults(topics=(refused,)))
        request = names("new")
        request.allow_auto_topic_creation = True
        assert world.ask(request, MetadataResponse, 9).topics[0].error_code == answered


def test_metadata_waits_for_the_leaders_of_a_new_topic(world: BrokerWorld) -> None:
    replicas = world.add_topic("t", 2)
    created(world, "t")
    replicas[1].follow(NO_BROKER, epoch=2)
    waiting = world.send(names("t"), 9)
    world.advance(LEADERS_WAIT_MS // 2)
    assert not waiting.is_answered
    replicas[1].lead(epoch=3)
    for group in [one.group for one in replicas]:
        world.replication.leaders[group] = LeaderEntry(group, 3, SELF)
        for callback in list(world.replication.on_leader_known):
            world.run(lambda callback=callback, group=group: callback(group))
    (topic,) = waiting.answer(MetadataResponse).topics
    assert (topic.error_code, [one.leader_id for one in topic.partitions]) == (0, [SELF, SELF])


def test_a_new_topic_without_a_leader_says_so_as_a_topic_for_a_while(world: BrokerWorld) -> None:
    replicas = world.add_topic("t", 2)
    created(world, "t")
    replicas[1].follow(NO_BROKER, epoch=2)
    waiting = world.send(names("t"), 9)
    world.advance(LEADERS_WAIT_MS)
    (topic,) = waiting.answer(MetadataResponse).topics
    assert topic.error_code == Error.LEADER_NOT_AVAILABLE
    assert [one.leader_id for one in topic.partitions] == [SELF, NO_BROKER]
    # The next requests on the connection do not wait again.
    assert world.ask(names("t"), MetadataResponse, 9).topics[0].error_code == topic.error_code
    assert world.ask(MetadataRequest(topics=None), MetadataResponse, 9).topics[0].error_code == (
        topic.error_code
    )
    world.advance(NEW_TOPIC_MS)
    (topic,) = world.ask(names("t"), MetadataResponse, 9).topics
    assert topic.error_code == Error.NONE
    assert [one.error_code for one in topic.partitions] == [0, Error.LEADER_NOT_AVAILABLE]


def test_topics_are_new_once_each_time_they_are_created(world: BrokerWorld) -> None:
    new_topics = world.services.new_topics
    created(world, "t")
    assert new_topics.is_new("t")
    assert not new_topics.is_new("u")
    new_topics.on_applied(TopicDeleted(name="t", id=UUID(int=1)))
    assert not new_topics.is_new("t")
    world.advance(NEW_TOPIC_MS)
    created(world, "t")
    world.advance(NEW_TOPIC_MS - 1)
    assert new_topics.is_new("t")
    created(world, "u")
    world.advance(1)
    created(world, "v")
    assert [new_topics.is_new(one) for one in "tuv"] == [False, True, True]


def test_describe_cluster_lists_silent_brokers_only_when_asked(world: BrokerWorld) -> None:
    world.replication.silent.add(OTHER)
    answer = world.ask(DescribeClusterRequest(), DescribeClusterResponse, 2)
    assert [one.broker_id for one in answer.brokers] == [SELF]
    assert (answer.cluster_id, answer.controller_id) == ("cluster-1", NO_BROKER)
    request = DescribeClusterRequest(include_fenced_brokers=True)
    answer = world.ask(request, DescribeClusterResponse, 2)
    assert [(one.broker_id, one.is_fenced) for one in answer.brokers] == [
        (SELF, False),
        (OTHER, True),
    ]


def test_describe_cluster_knows_brokers_only(world: BrokerWorld) -> None:
    for kind, code in (
        (2, Error.MISMATCHED_ENDPOINT_TYPE),
        (3, Error.UNSUPPORTED_ENDPOINT_TYPE),
    ):
        request = DescribeClusterRequest(endpoint_type=kind)
        assert world.ask(request, DescribeClusterResponse, 1).error_code == code


def test_topics_are_described_in_pages(world: BrokerWorld) -> None:
    world.add_topic("b", 3)
    world.add_topic("a", 2)
    seen: list[tuple[str | None, int]] = []
    cursor: Cursor | None = None
    for _ in range(10):
        request = DescribeTopicPartitionsRequest(response_partition_limit=2, cursor=cursor)
        answer = world.ask(request, DescribeTopicPartitionsResponse, 0)
        page = [(t.name, p.partition_index) for t in answer.topics for p in t.partitions]
        assert len(page) <= 2
        seen += page
        cursor = answer.next_cursor
        if cursor is None:
            break
    assert seen == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2)]


def test_pages_hold_named_topics_and_name_errors(world: BrokerWorld) -> None:
    world.add_topic("t")
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=one) for one in ("t", "none", "a/b")]
    )
    answer = world.ask(request, DescribeTopicPartitionsResponse, 0)
    assert [(one.name, one.error_code) for one in answer.topics] == [
        ("a/b", Error.INVALID_TOPIC_EXCEPTION),
        ("none", Error.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 0),
    ]
    request.cursor = Cursor(topic_name="t", partition_index=-1)
    answer = world.ask(request, DescribeTopicPartitionsResponse, 0)
    assert {one.error_code for one in answer.topics} == {Error.INVALID_REQUEST}
