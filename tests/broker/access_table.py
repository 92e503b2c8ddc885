"""The table of requests and the rights that open each of them, for `test_access`.

Source: Kafka 4.3's KafkaApis, ControllerApis and AuthorizerIntegrationTest; decision 0069."""

from typing import NamedTuple
from uuid import UUID

from strandline.model.access import Kind, Operation
from strandline.protocol.apis import APIS
from strandline.protocol.errors import Error
from strandline.protocol.messages.alter_client_quotas import (
    AlterClientQuotasEntry,
    AlterClientQuotasRequest,
    EntityData,
    OpData,
)
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
from strandline.protocol.messages.describe_producers import DescribeProducersRequest
from strandline.protocol.messages.describe_producers import TopicRequest as ProducersTopic
from strandline.protocol.messages.describe_tier import DescribeTierRequest
from strandline.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from strandline.protocol.messages.digest_replica import DigestReplicaRequest
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
TOPIC_ID = UUID(int=100)
"""That of a world's first topic."""
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
DIGEST = DigestReplicaRequest(topic=TOPIC)
WHOLE_STATE = DescribeTierRequest(topic_id=TOPIC_ID, partition=0)
COPY = CreatableTopic("copy", 1, 1, configs=[CreatableTopicConfig("read.replica.of", "file:///b")])
RESTORED = [
    CreatableTopic(TOPIC, 1, 1, configs=[CreatableTopicConfig(key, value)])
    for key, value in (
        ("restore.topic.id", "00000000-0000-0000-0000-00000000000b"),
        ("restore.history", "east:0:5:1"),
    )
]

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
    *(
        row(
            "CreateTopics",
            CreateTopicsRequest([one]),
            7,
            cluster(O.ALTER),
            given=(topic(O.CREATE),),
        )
        for one in RESTORED
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
    row(
        "AlterClientQuotas",
        AlterClientQuotasRequest(
            [AlterClientQuotasEntry([EntityData("user", "bob")], [OpData("request_percentage", 5)])]
        ),
        1,
        cluster(O.ALTER_CONFIGS),
    ),
    row("DigestReplica", DIGEST, 0, cluster(O.DESCRIBE), given=(topic(O.READ),)),
    row("DigestReplica", DIGEST, 0, topic(O.READ), given=(cluster(O.DESCRIBE),)),
    row("DescribeTier", WHOLE_STATE, 0, topic(O.READ), given=(cluster(O.DESCRIBE),)),
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
