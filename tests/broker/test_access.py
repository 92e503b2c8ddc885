"""Every API asks for the right that Kafka asks for, and one rule more or less changes its answer.

Why:    an API that forgets to ask is open to everyone.
How:    a table of requests, each with the rights that open it. Without rules a request is refused
        by the code of its kind of resource; with one of the rights it is not; with a denial beside
        it, it is again.
Source: Kafka 4.3's KafkaApis, ControllerApis and AuthorizerIntegrationTest; decision 0069."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

import msgspec
import pytest
from tests.broker.broker_world import SELF, BrokerWorld, Pending, Sink

from strandline.broker.access.authorisation import Authorisation
from strandline.broker.access.requirements import OPEN
from strandline.broker.handler_table import HANDLERS
from strandline.config.access_section import AccessSection
from strandline.model.access import Kind, Operation, PatternType, Permission, Rule
from strandline.model.cluster import Loss
from strandline.protocol.apis import APIS
from strandline.protocol.errors import Error
from strandline.protocol.messages.alter_configs import AlterConfigsRequest
from strandline.protocol.messages.alter_configs import AlterConfigsResource as OldResource
from strandline.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
)
from strandline.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from strandline.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from strandline.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from strandline.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from strandline.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from strandline.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from strandline.protocol.messages.delete_groups import DeleteGroupsRequest
from strandline.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from strandline.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from strandline.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from strandline.protocol.messages.describe_groups import DescribeGroupsRequest
from strandline.protocol.messages.describe_losses import DescribeLossesRequest
from strandline.protocol.messages.describe_observers import DescribeObserversRequest
from strandline.protocol.messages.describe_producers import DescribeProducersRequest
from strandline.protocol.messages.describe_producers import TopicRequest as ProducersTopic
from strandline.protocol.messages.describe_read_replicas import DescribeReadReplicasRequest
from strandline.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from strandline.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.protocol.messages.find_coordinator import FindCoordinatorRequest
from strandline.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from strandline.protocol.messages.init_producer_id import InitProducerIdRequest
from strandline.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from strandline.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from strandline.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from strandline.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from strandline.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from strandline.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from strandline.protocol.table import Message
from strandline.security.session import Principal, Session

ALICE = Session(principal=Principal.user("alice"), host="10.1.2.3")
REFUSALS = {
    Kind.TOPIC: Error.TOPIC_AUTHORIZATION_FAILED,
    Kind.GROUP: Error.GROUP_AUTHORIZATION_FAILED,
    Kind.CLUSTER: Error.CLUSTER_AUTHORIZATION_FAILED,
}
TOPIC, GROUP = "orders", "readers"
NAMES = {Kind.TOPIC: TOPIC, Kind.GROUP: GROUP, Kind.CLUSTER: "kafka-cluster"}
O = Operation  # noqa: E741 - a table of rights is read by its columns.


class Right(NamedTuple):
    """An operation with the one resource of its kind in these tests."""

    operation: Operation
    kind: Kind


def topic(operation: Operation) -> Right:
    return Right(operation, Kind.TOPIC)


def group(operation: Operation) -> Right:
    return Right(operation, Kind.GROUP)


def cluster(operation: Operation) -> Right:
    return Right(operation, Kind.CLUSTER)


class Row(NamedTuple):
    """A request; `needed`: all of these rights open it; `refusal`: the answer without any of them;
    `given`: rights that it has besides."""

    api: str
    request: Message
    version: int
    needed: tuple[Right, ...]
    refusal: Error
    given: tuple[Right, ...] = ()


def row(
    api: str, request: Message, version: int, *needed: Right, given: tuple[Right, ...] = ()
) -> Row:
    return Row(api, request, version, needed, REFUSALS[needed[0].kind], given)


def whole(api: str, right: Right, **fields: object) -> Row:
    """A request that needs one right as a whole."""
    known = next(one for one in APIS.values() if one.name == api)
    return row(api, known.request(**fields), known.max_version, right)


COMMIT = OffsetCommitRequest(
    group_id=GROUP,
    topics=[OffsetCommitRequestTopic(TOPIC, partitions=[OffsetCommitRequestPartition(0)])],
)
DELETION = OffsetDeleteRequest(
    GROUP, [OffsetDeleteRequestTopic(TOPIC, [OffsetDeleteRequestPartition(0)])]
)
COMMITTED = OffsetFetchRequest(
    groups=[
        OffsetFetchRequestGroup(
            GROUP, topics=[OffsetFetchRequestTopics(TOPIC, partition_indexes=[0])]
        )
    ]
)
COPY = CreatableTopic("copy", 1, 1, configs=[CreatableTopicConfig("read.replica.of", "file:///b")])

ROWS = [
    row(
        "Produce",
        ProduceRequest(
            None, 1, 1_000, [TopicProduceData(TOPIC, partition_data=[PartitionProduceData(0)])]
        ),
        9,
        topic(O.WRITE),
    ),
    row(
        "Fetch",
        FetchRequest(topics=[FetchTopic(TOPIC, partitions=[FetchPartition(0)])]),
        12,
        topic(O.READ),
    ),
    row(
        "ListOffsets",
        ListOffsetsRequest(-1, 0, [ListOffsetsTopic(TOPIC, [ListOffsetsPartition(0, -1, -1)])]),
        7,
        topic(O.DESCRIBE),
    ),
    row("Metadata", MetadataRequest([MetadataRequestTopic(name=TOPIC)]), 12, topic(O.DESCRIBE)),
    row("OffsetCommit", COMMIT, 8, group(O.READ), given=(topic(O.READ),)),
    row("OffsetCommit", COMMIT, 8, topic(O.READ), given=(group(O.READ),)),
    row("OffsetFetch", COMMITTED, 9, group(O.DESCRIBE), given=(topic(O.DESCRIBE),)),
    row("FindCoordinator", FindCoordinatorRequest(coordinator_keys=[GROUP]), 4, group(O.DESCRIBE)),
    whole("JoinGroup", group(O.READ), group_id=GROUP),
    whole("SyncGroup", group(O.READ), group_id=GROUP),
    whole("Heartbeat", group(O.READ), group_id=GROUP),
    whole("LeaveGroup", group(O.READ), group_id=GROUP),
    row("DescribeGroups", DescribeGroupsRequest([GROUP]), 5, group(O.DESCRIBE)),
    row("DeleteGroups", DeleteGroupsRequest([GROUP]), 2, group(O.DELETE)),
    row("OffsetDelete", DELETION, 0, group(O.DELETE), given=(topic(O.READ),)),
    row("CreateTopics", CreateTopicsRequest([CreatableTopic(TOPIC, 1, 1)]), 7, topic(O.CREATE)),
    row(
        "CreateTopics", CreateTopicsRequest([COPY]), 7, cluster(O.ALTER), given=(cluster(O.CREATE),)
    ),
    row(
        "DeleteTopics",
        DeleteTopicsRequest([DeleteTopicState(TOPIC)]),
        6,
        topic(O.DELETE),
    ),
    row(
        "DeleteRecords",
        DeleteRecordsRequest([DeleteRecordsTopic(TOPIC, [DeleteRecordsPartition(0, 0)])]),
        2,
        topic(O.DELETE),
    ),
    row(
        "CreatePartitions",
        CreatePartitionsRequest([CreatePartitionsTopic(TOPIC, 2)]),
        3,
        topic(O.ALTER),
    ),
    row(
        "InitProducerId", InitProducerIdRequest(None, 1_000, -1, -1), 4, cluster(O.IDEMPOTENT_WRITE)
    ),
    row(
        "OffsetForLeaderEpoch",
        OffsetForLeaderEpochRequest(
            -1, [OffsetForLeaderTopic(TOPIC, [OffsetForLeaderPartition(0)])]
        ),
        4,
        topic(O.DESCRIBE),
    ),
    row(
        "DescribeConfigs",
        DescribeConfigsRequest([DescribeConfigsResource(2, TOPIC)]),
        4,
        topic(O.DESCRIBE_CONFIGS),
    ),
    row(
        "DescribeConfigs",
        DescribeConfigsRequest([DescribeConfigsResource(4, "1")]),
        4,
        cluster(O.DESCRIBE_CONFIGS),
    ),
    row(
        "DescribeConfigs",
        DescribeConfigsRequest([DescribeConfigsResource(8, "1")]),
        4,
        cluster(O.DESCRIBE_CONFIGS),
    ),
    row(
        "DescribeConfigs",
        DescribeConfigsRequest([DescribeConfigsResource(32, GROUP)]),
        4,
        group(O.DESCRIBE_CONFIGS),
    ),
    row("AlterConfigs", AlterConfigsRequest([OldResource(2, TOPIC)]), 2, topic(O.ALTER_CONFIGS)),
    row("AlterConfigs", AlterConfigsRequest([OldResource(4, "")]), 2, cluster(O.ALTER_CONFIGS)),
    row(
        "IncrementalAlterConfigs",
        IncrementalAlterConfigsRequest([AlterConfigsResource(2, TOPIC)]),
        1,
        topic(O.ALTER_CONFIGS),
    ),
    row(
        "IncrementalAlterConfigs",
        IncrementalAlterConfigsRequest([AlterConfigsResource(8, "1")]),
        1,
        cluster(O.ALTER_CONFIGS),
    ),
    row(
        "DescribeProducers",
        DescribeProducersRequest([ProducersTopic(TOPIC, [0])]),
        0,
        topic(O.READ),
    ),
    row(
        "DescribeTopicPartitions",
        DescribeTopicPartitionsRequest([TopicRequest(TOPIC)]),
        0,
        topic(O.DESCRIBE),
    ),
    row(
        "AlterReplicaLogDirs",
        AlterReplicaLogDirsRequest(
            [AlterReplicaLogDir("/data", [AlterReplicaLogDirTopic(TOPIC, [0])])]
        ),
        2,
        cluster(O.ALTER),
    ),
    row("AlterPartitionReassignments", AlterPartitionReassignmentsRequest(), 0, cluster(O.ALTER)),
    row(
        "DescribeAcls",
        APIS[29].request(
            resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1
        ),
        3,
        cluster(O.DESCRIBE),
    ),
    row(
        "CreateAcls",
        CreateAclsRequest([AclCreation(2, "t", 3, "User:b", "*", 3, 3)]),
        3,
        cluster(O.ALTER),
    ),
    row(
        "DeleteAcls",
        DeleteAclsRequest([DeleteAclsFilter(1, None, 1, None, None, 1, 1)]),
        3,
        cluster(O.ALTER),
    ),
    row(
        "AlterUserScramCredentials",
        AlterUserScramCredentialsRequest([ScramCredentialDeletion("bob", 1)]),
        0,
        cluster(O.ALTER),
    ),
    *(
        whole(api, cluster(operation))
        for api, operation in {
            "ElectLeaders": O.ALTER,
            "UnregisterBroker": O.ALTER,
            "UpdateFeatures": O.ALTER,
            "DescribeLogDirs": O.DESCRIBE,
            "DescribeQuorum": O.DESCRIBE,
            "DescribeUserScramCredentials": O.DESCRIBE,
            "DescribeClientQuotas": O.DESCRIBE_CONFIGS,
            "ListConfigResources": O.DESCRIBE_CONFIGS,
            "ListPartitionReassignments": O.DESCRIBE,
            "DescribeTopology": O.DESCRIBE,
            "DescribeBalance": O.DESCRIBE,
            "DescribeWriters": O.DESCRIBE,
            "DescribeLeadership": O.DESCRIBE,
            "DescribeReplicaStatus": O.DESCRIBE,
            "DescribeExports": O.DESCRIBE,
            "DescribeZones": O.DESCRIBE,
            "DescribeReplicaLogs": O.DESCRIBE,
            "DescribeStatus": O.DESCRIBE,
            "DescribeTier": O.DESCRIBE,
            "DigestReplica": O.DESCRIBE,
            "AlterBrokerLabels": O.ALTER,
            "RuleZone": O.ALTER,
            "DeclareLost": O.ALTER,
            "RecoverPartition": O.ALTER,
            "IdentifyBucket": O.ALTER,
            "RepairObject": O.ALTER,
            "IsolateBroker": O.CLUSTER_ACTION,
        }.items()
    ),
]

WITHOUT_REFUSAL = {
    "ListGroups",
    "DescribeCluster",
    "DescribeObservers",
    "DescribeReadReplicas",
    "DescribeLosses",
}
"""They leave out what may not be seen; see the tests below."""


def test_the_table_has_every_api() -> None:
    offered = {APIS[key].name for key in HANDLERS}
    assert offered == {one.api for one in ROWS} | WITHOUT_REFUSAL | OPEN


def rule(right: Right, permission: Permission = Permission.ALLOW) -> Rule:
    name = NAMES[right.kind]
    return Rule(
        right.kind, PatternType.LITERAL, name, "User:alice", "*", right.operation, permission
    )


def enforce(world: BrokerWorld, *rules: Rule) -> None:
    section = AccessSection(enforce_rules=True, super_users=("User:admin",))
    services = world.services
    services.access = Authorisation(section, services.cluster, broker_id=services.broker_id)
    services.cluster.access.rules = dict.fromkeys(rules)
    services.cluster.access.version += 1


def codes_of(value: object) -> Iterator[int]:
    """Every error code in an answer."""
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            if name == "error_code":
                yield getattr(value, name)
            else:
                yield from codes_of(getattr(value, name))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from codes_of(one)


def send(world: BrokerWorld, request: Message, version: int, session: Session) -> Pending:
    sink = Sink()
    sink.session = session
    pending = world.send(request, version, sink=sink)
    world.advance(0)
    return pending


def answer_to(pending: Pending, request: Message) -> Message:
    api = next(one for one in APIS.values() if one.request is type(request))
    return pending.answer(api.response)


def ask(world: BrokerWorld, request: Message, version: int) -> Message:
    return answer_to(send(world, request, version, ALICE), request)


def refusals_in(world: BrokerWorld, one: Row, session: Session = ALICE) -> set[int]:
    """The refusals in the answer. This broker has no coordinator and no peers, so a request that
    is let in may wait, or fail for want of them."""
    pending = send(world, one.request, one.version, session)
    if not pending.context.is_answered:
        return set()
    found = set(codes_of(answer_to(pending, one.request)))
    return found & set(map(int, REFUSALS.values()))


@pytest.mark.parametrize("one", ROWS, ids=[f"{one.api}-{one.needed[0].kind.name}" for one in ROWS])
def test_a_request_needs_its_right(world: BrokerWorld, one: Row) -> None:
    world.add_topic(TOPIC)
    given = [rule(right) for right in one.given]
    right = [rule(right) for right in one.needed]
    denied = [rule(right, Permission.DENY) for right in one.needed]
    enforce(world, *given)
    assert refusals_in(world, one) == {one.refusal}
    assert refusals_in(world, one, replace(ALICE, principal=Principal.user("admin"))) == set()
    others = [msgspec.structs.replace(each, principal="User:bob") for each in right]
    enforce(world, *given, *others)
    assert refusals_in(world, one) == {one.refusal}
    enforce(world, *given, *right, *denied)
    assert refusals_in(world, one) == {one.refusal}
    enforce(world, *given, *right)
    assert refusals_in(world, one) == set()


def test_without_rules_in_force_all_is_open(world: BrokerWorld) -> None:
    world.add_topic(TOPIC)
    for one in ROWS:
        assert refusals_in(world, one) == set(), one.api


# ---- what may not be seen ------------------------------------------------------------------------


def test_a_forbidden_topic_and_one_that_is_not_there_look_alike(world: BrokerWorld) -> None:
    world.add_topic(TOPIC)
    enforce(world)
    answers = []
    for name in (TOPIC, "no-such-topic"):
        answer = ask(world, MetadataRequest([MetadataRequestTopic(name=name)]), 12)
        (one,) = answer.topics  # type: ignore[attr-defined]
        assert one.name == name
        one.name = ""
        answers.append(one)
    assert answers[0] == answers[1]
    assert answers[0].error_code == Error.TOPIC_AUTHORIZATION_FAILED


def test_all_topics_are_those_that_may_be_described(world: BrokerWorld) -> None:
    world.add_topic(TOPIC)
    world.add_topic("secret")
    enforce(world, rule(topic(O.READ)))
    everything = ask(world, MetadataRequest(None), 12)
    assert [one.name for one in everything.topics] == [TOPIC]  # type: ignore[attr-defined]
    page = ask(world, DescribeTopicPartitionsRequest(), 0)
    assert [one.name for one in page.topics] == [TOPIC]  # type: ignore[attr-defined]


@pytest.mark.parametrize("right", [topic(O.READ), cluster(O.DESCRIBE)])
def test_replicas_are_told_to_clients_that_may_describe_the_topic(
    world: BrokerWorld, right: Right
) -> None:
    for name in (TOPIC, "secret"):
        world.add_topic(name)
        known = world.cluster.topics[name]
        loss = Loss(
            grant=1, lost=(), survivors=(), ends=(), leader=SELF, committed=0, end=0, by="", at_ms=0
        )
        known.partitions[0] = replace(known.partitions[0], observers=(SELF,), losses=(loss,))
    enforce(world, rule(right))
    seen = [TOPIC] if right.kind is Kind.TOPIC else [TOPIC, "secret"]
    observed = ask(world, DescribeObserversRequest(), 0)
    assert [one.topic for one in observed.partitions] == seen  # type: ignore[attr-defined]
    lost = ask(world, DescribeLossesRequest(), 0)
    assert [one.topic for one in lost.losses] == seen  # type: ignore[attr-defined]
    enforce(world)
    assert not ask(world, DescribeObserversRequest([TOPIC]), 0).partitions  # type: ignore[attr-defined]
    assert not ask(world, DescribeReadReplicasRequest([TOPIC]), 0).partitions  # type: ignore[attr-defined]


def test_a_topic_by_its_id_is_refused_without_its_name(world: BrokerWorld) -> None:
    world.add_topic(TOPIC)
    identity = world.cluster.topics[TOPIC].id
    enforce(world)
    request = MetadataRequest([MetadataRequestTopic(topic_id=identity, name=None)])
    (one,) = ask(world, request, 12).topics  # type: ignore[attr-defined]
    assert (one.error_code, one.name) == (Error.TOPIC_AUTHORIZATION_FAILED, None)
    request2 = DeleteTopicsRequest([DeleteTopicState(None, identity)])
    (gone,) = ask(world, request2, 6).responses  # type: ignore[attr-defined]
    assert (gone.error_code, gone.name) == (Error.TOPIC_AUTHORIZATION_FAILED, None)
    assert not world.controller.commands


def test_a_request_is_split_into_what_is_allowed_and_what_is_not(world: BrokerWorld) -> None:
    world.add_topic(TOPIC)
    world.add_topic("secret")
    enforce(world, rule(topic(O.DESCRIBE)))
    request = ListOffsetsRequest(
        -1,
        0,
        [ListOffsetsTopic(name, [ListOffsetsPartition(0, -1, -1)]) for name in (TOPIC, "secret")],
    )
    answer = ask(world, request, 7)
    codes = [one.partitions[0].error_code for one in answer.topics]  # type: ignore[attr-defined]
    assert codes == [Error.NONE, Error.TOPIC_AUTHORIZATION_FAILED]


def test_clients_are_told_the_operations_that_they_may_do(world: BrokerWorld) -> None:
    world.add_topic(TOPIC)
    enforce(world, rule(topic(O.WRITE)), rule(cluster(O.DESCRIBE)))
    request = MetadataRequest(
        [MetadataRequestTopic(name=TOPIC)],
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    answer = ask(world, request, 10)
    (one,) = answer.topics  # type: ignore[attr-defined]
    assert one.topic_authorized_operations == (1 << O.WRITE) | (1 << O.DESCRIBE)
    assert answer.cluster_authorized_operations == 1 << O.DESCRIBE  # type: ignore[attr-defined]


def test_an_id_that_is_not_known_here_is_not_deleted_elsewhere(world: BrokerWorld) -> None:
    """The controller may know the topic already; this broker cannot say who may delete it."""
    enforce(world)
    request = DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=UUID(int=4711))])
    (one,) = ask(world, request, 6).responses  # type: ignore[attr-defined]
    assert one.error_code == Error.UNKNOWN_TOPIC_ID
    assert not world.controller.commands


def fetch_of(*, max_wait_ms: int = 0, session_id: int = 0, epoch: int = -1) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000_000)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1_000_000,
        topics=[FetchTopic(topic=TOPIC, partitions=[partition])] if epoch < 1 else [],
        session_id=session_id,
        session_epoch=epoch,
    )


def test_a_fetch_that_waited_is_judged_by_the_rules_of_its_answer(world: BrokerWorld) -> None:
    (replica,) = world.add_topic(TOPIC)
    enforce(world, rule(topic(O.READ)))
    pending = send(world, fetch_of(max_wait_ms=10_000), 12, ALICE)
    assert not pending.context.is_answered
    services = world.services
    services.cluster.access.rules = {}
    services.cluster.access.version += 1
    replica.write(b"after")
    world.advance(0)
    (one,) = answer_to(pending, fetch_of()).responses  # type: ignore[attr-defined]
    assert one.partitions[0].error_code == Error.TOPIC_AUTHORIZATION_FAILED
    assert not one.partitions[0].records


def test_a_fetch_that_waited_beyond_the_end_of_its_login_gets_nothing(world: BrokerWorld) -> None:
    (replica,) = world.add_topic(TOPIC)
    ends_at_ms = world.services.clock.monotonic_ms() + 1_000
    pending = send(world, fetch_of(max_wait_ms=10_000), 12, replace(ALICE, ends_at_ms=ends_at_ms))
    world.advance(2_000)
    replica.write(b"after")
    world.advance(0)
    (one,) = answer_to(pending, fetch_of()).responses  # type: ignore[attr-defined]
    assert one.partitions[0].error_code == Error.TOPIC_AUTHORIZATION_FAILED
    assert not one.partitions[0].records


def test_a_fetch_session_is_of_its_user(world: BrokerWorld) -> None:
    """Or a client that finds its id learns names of topics, and ends it."""
    world.add_topic(TOPIC)
    enforce(world, rule(topic(O.READ)))
    opened = ask(world, fetch_of(epoch=0), 12)
    number: int = opened.session_id  # type: ignore[attr-defined]
    assert number
    mallory = replace(ALICE, principal=Principal.user("mallory"))
    request = fetch_of(session_id=number, epoch=1)
    stolen = answer_to(send(world, request, 12, mallory), request)
    assert stolen.error_code == Error.FETCH_SESSION_ID_NOT_FOUND  # type: ignore[attr-defined]
    send(world, fetch_of(session_id=number, epoch=-1), 12, mallory)
    assert ask(world, request, 12).error_code == Error.NONE  # type: ignore[attr-defined]
