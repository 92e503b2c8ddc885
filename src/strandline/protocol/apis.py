"""All APIs and their versions: one row per pair of request and response.

Why:    router, client, the ApiVersions response and documentation read the same rows.
How:    key and versions come from the message classes, where they are written once. This is what
        can be encoded and decoded; a broker decides which of them it offers.
Source: reference kafka-protocol.md, table of APIs (Kafka 4.4)."""

from dataclasses import dataclass

from strandline.protocol.messages.alter_broker_labels import (
    AlterBrokerLabelsRequest,
    AlterBrokerLabelsResponse,
)
from strandline.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)
from strandline.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from strandline.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from strandline.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
)
from strandline.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from strandline.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from strandline.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from strandline.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from strandline.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)
from strandline.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from strandline.protocol.messages.declare_lost import DeclareLostRequest, DeclareLostResponse
from strandline.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from strandline.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from strandline.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from strandline.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from strandline.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from strandline.protocol.messages.describe_balance import (
    DescribeBalanceRequest,
    DescribeBalanceResponse,
)
from strandline.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from strandline.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from strandline.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from strandline.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from strandline.protocol.messages.describe_exports import (
    DescribeExportsRequest,
    DescribeExportsResponse,
)
from strandline.protocol.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from strandline.protocol.messages.describe_leadership import (
    DescribeLeadershipRequest,
    DescribeLeadershipResponse,
)
from strandline.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from strandline.protocol.messages.describe_losses import (
    DescribeLossesRequest,
    DescribeLossesResponse,
)
from strandline.protocol.messages.describe_observers import (
    DescribeObserversRequest,
    DescribeObserversResponse,
)
from strandline.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
)
from strandline.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
)
from strandline.protocol.messages.describe_read_replicas import (
    DescribeReadReplicasRequest,
    DescribeReadReplicasResponse,
)
from strandline.protocol.messages.describe_replica_logs import (
    DescribeReplicaLogsRequest,
    DescribeReplicaLogsResponse,
)
from strandline.protocol.messages.describe_replica_status import (
    DescribeReplicaStatusRequest,
    DescribeReplicaStatusResponse,
)
from strandline.protocol.messages.describe_status import (
    DescribeStatusRequest,
    DescribeStatusResponse,
)
from strandline.protocol.messages.describe_tier import (
    DescribeTierRequest,
    DescribeTierResponse,
)
from strandline.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from strandline.protocol.messages.describe_topology import (
    DescribeTopologyRequest,
    DescribeTopologyResponse,
)
from strandline.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from strandline.protocol.messages.describe_writers import (
    DescribeWritersRequest,
    DescribeWritersResponse,
)
from strandline.protocol.messages.describe_zones import (
    DescribeZonesRequest,
    DescribeZonesResponse,
)
from strandline.protocol.messages.digest_replica import (
    DigestReplicaRequest,
    DigestReplicaResponse,
)
from strandline.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from strandline.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from strandline.protocol.messages.fetch import FetchRequest, FetchResponse
from strandline.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from strandline.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from strandline.protocol.messages.identify_bucket import (
    IdentifyBucketRequest,
    IdentifyBucketResponse,
)
from strandline.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from strandline.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from strandline.protocol.messages.isolate_broker import (
    IsolateBrokerRequest,
    IsolateBrokerResponse,
)
from strandline.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from strandline.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from strandline.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from strandline.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from strandline.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from strandline.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from strandline.protocol.messages.metadata import MetadataRequest, MetadataResponse
from strandline.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from strandline.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from strandline.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from strandline.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from strandline.protocol.messages.produce import ProduceRequest, ProduceResponse
from strandline.protocol.messages.recover_partition import (
    RecoverPartitionRequest,
    RecoverPartitionResponse,
)
from strandline.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from strandline.protocol.messages.repair_object import RepairObjectRequest, RepairObjectResponse
from strandline.protocol.messages.rule_zone import RuleZoneRequest, RuleZoneResponse
from strandline.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from strandline.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from strandline.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from strandline.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from strandline.protocol.messages.update_features import (
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from strandline.protocol.table import Message, VersionRange

OWN_APIS_FROM = 20_000
"""APIs of our own have keys from here; Kafka has no such key. ApiVersions names them in version 0
alone."""


@dataclass(frozen=True, slots=True)
class Api:
    """One API. Versions `min_version` to `max_version` can be encoded and decoded."""

    key: int
    name: str
    request: type[Message]
    response: type[Message]
    min_version: int
    max_version: int
    flexible_from: int | None
    """First version with compact lengths and tags; None: there is none."""
    advertised_min: int
    """Lowest version that ApiVersions names: below `served_min` where clients infer from it."""
    served_min: int
    """Lowest version that brokers serve: above `min_version` where they do not serve all that can
    be decoded."""

    def is_flexible(self, version: int) -> bool:
        """Whether this version has compact lengths, tags, and the higher header."""
        return self.flexible_from is not None and version >= self.flexible_from

    def supports(self, version: int) -> bool:
        """Whether this version can be encoded and decoded."""
        return self.min_version <= version <= self.max_version


def _api(
    request: type[Message],
    response: type[Message],
    *,
    advertised_min: int | None = None,
    served_min: int | None = None,
) -> Api:
    versions = VersionRange.parse(request.VERSIONS)
    flexible = VersionRange.parse(request.FLEXIBLE)
    assert (request.API_KEY, request.VERSIONS, request.FLEXIBLE) == (
        response.API_KEY,
        response.VERSIONS,
        response.FLEXIBLE,
    )
    return Api(
        key=request.API_KEY,
        name=request.__name__.removesuffix("Request"),
        request=request,
        response=response,
        min_version=versions.first,
        max_version=versions.last,
        flexible_from=None if request.FLEXIBLE == "none" else flexible.first,
        advertised_min=versions.first if advertised_min is None else advertised_min,
        served_min=versions.first if served_min is None else served_min,
    )


APIS: dict[int, Api] = {
    api.key: api
    for api in (
        # librdkafka takes a range from 0 as the sign of a broker that knows batches v2.
        _api(ProduceRequest, ProduceResponse, advertised_min=0),
        _api(FetchRequest, FetchResponse),
        _api(ListOffsetsRequest, ListOffsetsResponse),
        _api(MetadataRequest, MetadataResponse),
        _api(OffsetCommitRequest, OffsetCommitResponse),
        _api(OffsetFetchRequest, OffsetFetchResponse),
        _api(FindCoordinatorRequest, FindCoordinatorResponse),
        _api(JoinGroupRequest, JoinGroupResponse),
        _api(HeartbeatRequest, HeartbeatResponse),
        _api(LeaveGroupRequest, LeaveGroupResponse),
        _api(SyncGroupRequest, SyncGroupResponse),
        _api(DescribeGroupsRequest, DescribeGroupsResponse),
        _api(ListGroupsRequest, ListGroupsResponse),
        # librdkafka before 2.1 logs in only where the range holds version 0, and then by version 1.
        _api(SaslHandshakeRequest, SaslHandshakeResponse, served_min=1),
        _api(ApiVersionsRequest, ApiVersionsResponse),
        _api(CreateTopicsRequest, CreateTopicsResponse),
        _api(DeleteTopicsRequest, DeleteTopicsResponse),
        _api(DeleteRecordsRequest, DeleteRecordsResponse),
        _api(InitProducerIdRequest, InitProducerIdResponse),
        _api(OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse),
        _api(DescribeAclsRequest, DescribeAclsResponse),
        _api(CreateAclsRequest, CreateAclsResponse),
        _api(DeleteAclsRequest, DeleteAclsResponse),
        _api(DescribeConfigsRequest, DescribeConfigsResponse),
        _api(AlterConfigsRequest, AlterConfigsResponse),
        _api(AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse),
        _api(DescribeLogDirsRequest, DescribeLogDirsResponse),
        _api(SaslAuthenticateRequest, SaslAuthenticateResponse),
        _api(CreatePartitionsRequest, CreatePartitionsResponse),
        _api(CreateDelegationTokenRequest, CreateDelegationTokenResponse),
        _api(RenewDelegationTokenRequest, RenewDelegationTokenResponse),
        _api(ExpireDelegationTokenRequest, ExpireDelegationTokenResponse),
        _api(DescribeDelegationTokenRequest, DescribeDelegationTokenResponse),
        _api(DeleteGroupsRequest, DeleteGroupsResponse),
        _api(ElectLeadersRequest, ElectLeadersResponse),
        _api(IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse),
        _api(AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse),
        _api(ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse),
        _api(OffsetDeleteRequest, OffsetDeleteResponse),
        _api(DescribeClientQuotasRequest, DescribeClientQuotasResponse),
        _api(AlterClientQuotasRequest, AlterClientQuotasResponse),
        _api(DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse),
        _api(AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse),
        _api(DescribeQuorumRequest, DescribeQuorumResponse),
        _api(UpdateFeaturesRequest, UpdateFeaturesResponse),
        _api(DescribeClusterRequest, DescribeClusterResponse),
        _api(DescribeProducersRequest, DescribeProducersResponse),
        _api(UnregisterBrokerRequest, UnregisterBrokerResponse),
        _api(ListConfigResourcesRequest, ListConfigResourcesResponse),
        _api(DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse),
        _api(DescribeTopologyRequest, DescribeTopologyResponse),
        _api(DescribeBalanceRequest, DescribeBalanceResponse),
        _api(DescribeWritersRequest, DescribeWritersResponse),
        _api(DescribeLeadershipRequest, DescribeLeadershipResponse),
        _api(AlterBrokerLabelsRequest, AlterBrokerLabelsResponse),
        _api(DescribeObserversRequest, DescribeObserversResponse),
        _api(DescribeReplicaStatusRequest, DescribeReplicaStatusResponse),
        _api(IsolateBrokerRequest, IsolateBrokerResponse),
        _api(DescribeZonesRequest, DescribeZonesResponse),
        _api(RuleZoneRequest, RuleZoneResponse),
        _api(DescribeReplicaLogsRequest, DescribeReplicaLogsResponse),
        _api(DeclareLostRequest, DeclareLostResponse),
        _api(DescribeLossesRequest, DescribeLossesResponse),
        _api(DescribeStatusRequest, DescribeStatusResponse),
        _api(DigestReplicaRequest, DigestReplicaResponse),
        _api(DescribeTierRequest, DescribeTierResponse),
        _api(DescribeExportsRequest, DescribeExportsResponse),
        _api(DescribeReadReplicasRequest, DescribeReadReplicasResponse),
        _api(RecoverPartitionRequest, RecoverPartitionResponse),
        _api(IdentifyBucketRequest, IdentifyBucketResponse),
        _api(RepairObjectRequest, RepairObjectResponse),
    )
}
"""{API key: row}, ascending."""

API_KEYS: dict[str, int] = {api.name: api.key for api in APIS.values()}
"""{name, such as "Produce": key}."""
