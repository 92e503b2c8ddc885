"""The requests of the table that administrators' tools send.

How:    see `requests`."""

from differential.access.requests import NAMED, TIMEOUT_MS, Ids, Request
from differential.access.subjects import GROUP, HIDDEN_GROUP, HIDDEN_TOPIC, NEW_TOPIC, TOPIC
from strandline.protocol.messages import (
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_quorum,
    describe_user_scram_credentials,
    elect_leaders,
    incremental_alter_configs,
    list_config_resources,
    list_partition_reassignments,
    unregister_broker,
    update_features,
)
from strandline.protocol.table import Message

BROKER = "1"
NO_BROKER_ID = 999
TOPIC_CONFIGS, BROKER_CONFIGS, BROKER_LOGGERS, CLIENT_METRICS, GROUP_CONFIGS = 2, 4, 8, 16, 32
RESOURCES = (
    (TOPIC_CONFIGS, TOPIC),
    (TOPIC_CONFIGS, "absent"),
    (TOPIC_CONFIGS, HIDDEN_TOPIC),
    (BROKER_CONFIGS, BROKER),
    (BROKER_CONFIGS, ""),
    (GROUP_CONFIGS, GROUP),
    (GROUP_CONFIGS, HIDDEN_GROUP),
)
"""(type, name) of what has a configuration."""


def _create_topics(*, validate_only: bool) -> Message:
    return create_topics.CreateTopicsRequest(
        [create_topics.CreatableTopic(name, 1, 1) for name in (NEW_TOPIC, TOPIC, HIDDEN_TOPIC)],
        timeout_ms=TIMEOUT_MS,
        validate_only=validate_only,
    )


def _delete_topics(ids: Ids, *, by_id: bool = False) -> Message:
    names = (TOPIC, "absent")
    state = delete_topics.DeleteTopicState
    return delete_topics.DeleteTopicsRequest(
        topics=[state(None, ids[name]) if by_id else state(name) for name in names],
        topic_names=[] if by_id else list(names),
        timeout_ms=TIMEOUT_MS,
    )


def _delete_records(_: Ids) -> Message:
    return delete_records.DeleteRecordsRequest(
        [
            delete_records.DeleteRecordsTopic(name, [delete_records.DeleteRecordsPartition(0, 0)])
            for name in NAMED
        ],
        timeout_ms=TIMEOUT_MS,
    )


def _create_partitions(_: Ids) -> Message:
    return create_partitions.CreatePartitionsRequest(
        [create_partitions.CreatePartitionsTopic(name, 2) for name in NAMED],
        timeout_ms=TIMEOUT_MS,
        validate_only=True,
    )


def _describe_configs(_: Ids) -> Message:
    return describe_configs.DescribeConfigsRequest(
        [
            describe_configs.DescribeConfigsResource(kind, name, None)
            for kind, name in (*RESOURCES, (BROKER_LOGGERS, BROKER))
        ]
    )


def _alter_configs(_: Ids) -> Message:
    return alter_configs.AlterConfigsRequest(
        [
            alter_configs.AlterConfigsResource(kind, name)
            for kind, name in RESOURCES
            if kind != GROUP_CONFIGS and name
        ],
        validate_only=True,
    )


def _alter_configs_by_key(_: Ids) -> Message:
    return incremental_alter_configs.IncrementalAlterConfigsRequest(
        [
            incremental_alter_configs.AlterConfigsResource(kind, name)
            for kind, name in (*RESOURCES, (BROKER_LOGGERS, BROKER))
        ],
        validate_only=True,
    )


def _alter_quotas(_: Ids) -> Message:
    entry = alter_client_quotas.AlterClientQuotasEntry(
        [alter_client_quotas.EntityData("user", "someone")],
        [alter_client_quotas.OpData("producer_byte_rate", 1_000_000.0)],
    )
    return alter_client_quotas.AlterClientQuotasRequest([entry], validate_only=True)


def _elect_leaders(_: Ids) -> Message:
    return elect_leaders.ElectLeadersRequest(
        topic_partitions=[elect_leaders.TopicPartitions(name, [0]) for name in NAMED],
        timeout_ms=TIMEOUT_MS,
    )


def _cancel_moves(_: Ids) -> Message:
    return alter_partition_reassignments.AlterPartitionReassignmentsRequest(
        timeout_ms=TIMEOUT_MS,
        topics=[
            alter_partition_reassignments.ReassignableTopic(
                name, [alter_partition_reassignments.ReassignablePartition(0, None)]
            )
            for name in NAMED
        ],
    )


def _move_logs(_: Ids) -> Message:
    return alter_replica_log_dirs.AlterReplicaLogDirsRequest(
        [
            alter_replica_log_dirs.AlterReplicaLogDir(
                "/no/such/directory",
                [alter_replica_log_dirs.AlterReplicaLogDirTopic(name, [0]) for name in NAMED],
            )
        ]
    )


def _quorum(_: Ids) -> Message:
    return describe_quorum.DescribeQuorumRequest(
        [
            describe_quorum.RequestedTopic(
                "__cluster_metadata", [describe_quorum.RequestedPartition(0)]
            )
        ]
    )


ADMIN_REQUESTS: tuple[Request, ...] = (
    Request("CreateTopics", lambda _: _create_topics(validate_only=False), changes=True),
    Request("CreateTopics, validate only", lambda _: _create_topics(validate_only=True)),
    Request("DeleteTopics", _delete_topics, changes=True),
    Request(
        "DeleteTopics by id",
        lambda ids: _delete_topics(ids, by_id=True),
        changes=True,
        oldest=6,
    ),
    Request("DeleteRecords", _delete_records),
    Request("CreatePartitions, validate only", _create_partitions),
    Request("DescribeConfigs", _describe_configs),
    Request("AlterConfigs, validate only", _alter_configs),
    Request("IncrementalAlterConfigs, validate only", _alter_configs_by_key),
    Request(
        "ListConfigResources", lambda _: list_config_resources.ListConfigResourcesRequest([2, 32])
    ),
    Request("ElectLeaders", _elect_leaders),
    Request("AlterPartitionReassignments", _cancel_moves),
    Request(
        "ListPartitionReassignments",
        lambda _: list_partition_reassignments.ListPartitionReassignmentsRequest(
            timeout_ms=TIMEOUT_MS, topics=None
        ),
    ),
    Request("AlterReplicaLogDirs", _move_logs),
    Request(
        "DescribeLogDirs",
        lambda _: describe_log_dirs.DescribeLogDirsRequest(
            topics=[describe_log_dirs.DescribableLogDirTopic(name, [0]) for name in NAMED]
        ),
    ),
    Request("DescribeLogDirs, all", lambda _: describe_log_dirs.DescribeLogDirsRequest(None)),
    Request(
        "DescribeCluster",
        lambda _: describe_cluster.DescribeClusterRequest(
            include_cluster_authorized_operations=True
        ),
    ),
    Request("DescribeQuorum", _quorum),
    Request("UnregisterBroker", lambda _: unregister_broker.UnregisterBrokerRequest(NO_BROKER_ID)),
    Request(
        "UpdateFeatures",
        lambda _: update_features.UpdateFeaturesRequest(
            TIMEOUT_MS, [update_features.FeatureUpdateKey("no.such.feature", 1)], validate_only=True
        ),
    ),
    Request("DescribeClientQuotas", lambda _: describe_client_quotas.DescribeClientQuotasRequest()),
    Request("AlterClientQuotas, validate only", _alter_quotas),
    Request(
        "DescribeUserScramCredentials",
        lambda _: describe_user_scram_credentials.DescribeUserScramCredentialsRequest(
            [describe_user_scram_credentials.UserName("stranger")]
        ),
    ),
    Request(
        "DescribeUserScramCredentials, all",
        # An empty list: to null Kafka 4.3 never answers a client without the right.
        lambda _: describe_user_scram_credentials.DescribeUserScramCredentialsRequest([]),
    ),
    Request(
        "AlterUserScramCredentials",
        lambda _: alter_user_scram_credentials.AlterUserScramCredentialsRequest(
            [alter_user_scram_credentials.ScramCredentialDeletion("stranger", 1)]
        ),
    ),
    Request(
        "DescribeAcls",
        lambda _: describe_acls.DescribeAclsRequest(1, None, 1, "User:stranger", None, 1, 1),
    ),
    Request(
        "CreateAcls",
        lambda _: create_acls.CreateAclsRequest(
            [create_acls.AclCreation(2, "unused", 3, "User:someone", "*", 3, 3)]
        ),
    ),
    Request(
        "DeleteAcls",
        lambda _: delete_acls.DeleteAclsRequest(
            [delete_acls.DeleteAclsFilter(1, None, 1, "User:stranger", None, 1, 1)]
        ),
    ),
)
"""What administrators ask, and change."""
