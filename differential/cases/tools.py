"""What admin tools ask that has little to do with topics: rules, tokens, quotas, features."""

import msgspec

from differential.cases.registry import case, create, produce_request
from differential.peer import Peer
from strandline.protocol.messages.alter_client_quotas import (
    AlterClientQuotasEntry,
    AlterClientQuotasRequest,
    EntityData,
    OpData,
)
from strandline.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from strandline.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from strandline.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from strandline.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from strandline.protocol.messages.describe_acls import DescribeAclsRequest
from strandline.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from strandline.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
)
from strandline.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from strandline.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestedPartition,
    RequestedTopic,
)
from strandline.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from strandline.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from strandline.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from strandline.protocol.messages.unregister_broker import UnregisterBrokerRequest
from strandline.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
)
from strandline.records.record import Record, build_batch


@case
def access_rules(peer: Peer) -> None:
    """Without an authoriser."""
    everything = DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    rule = AclCreation(2, "t", 3, "User:a", "*", 3, 3)
    some = DeleteAclsFilter(1, None, 1, None, None, 1, 1)
    for version in range(1, 4):
        peer.ask(f"v{version} described", everything, version)
        peer.ask(f"v{version} created", CreateAclsRequest([rule, rule]), version)
        peer.ask(f"v{version} deleted", DeleteAclsRequest([some]), version)


@case
def tokens(peer: Peer) -> None:
    """On a connection without authentication."""
    for version in range(1, 4):
        request = CreateDelegationTokenRequest(None, None, max_lifetime_ms=-1)
        peer.ask(f"v{version} made", request, version)
        peer.ask(f"v{version} described", DescribeDelegationTokenRequest(None), version)
    for version in range(1, 3):
        peer.ask(f"v{version} renewed", RenewDelegationTokenRequest(b"x", 1), version)
        peer.ask(f"v{version} ended", ExpireDelegationTokenRequest(b"x", 1), version)


@case
def quotas(peer: Peer) -> None:
    """None are set; filters good and bad."""
    user = ComponentData("user", 2, None)
    for label, components in (
        ("all", []),
        ("of users", [user]),
        ("of no type", [ComponentData("", 0, "x")]),
        ("of another type", [ComponentData("broker", 0, "x")]),
        ("one type twice", [user, ComponentData("user", 0, "x")]),
        ("ip and user", [ComponentData("ip", 2, None), user]),
        ("no such match", [ComponentData("user", 7, None)]),
        ("no name", [ComponentData("user", 0, None)]),
    ):
        for version in range(2):
            peer.ask(f"v{version} {label}", DescribeClientQuotasRequest(components), version)


@case
def changed_quotas(peer: Peer) -> None:
    """Set, replaced, removed, and refused."""
    alice = [EntityData("user", "alice")]
    pair = [EntityData("user", "alice"), EntityData("client-id", None)]
    set_ = [OpData("producer_byte_rate", 1_000.0), OpData("request_percentage", 12.5)]
    for label, entries in (
        ("set", [(alice, set_), (pair, [OpData("consumer_byte_rate", 5.0)])]),
        ("set again", [(alice, set_)]),
        ("one removed", [(alice, [OpData("producer_byte_rate", 0.0, remove=True)])]),
        ("what is not there removed", [(alice, [OpData("consumer_byte_rate", 0.0, remove=True)])]),
        ("an unknown key removed", [(alice, [OpData("x", 0.0, remove=True)])]),
        ("an unknown key", [(alice, [OpData("x", 1.0)])]),
        ("no change", [(alice, [])]),
        ("zero", [(alice, [OpData("producer_byte_rate", 0.0)])]),
        ("negative", [(alice, [OpData("request_percentage", -1.0)])]),
        ("a fraction of a byte", [(alice, [OpData("producer_byte_rate", 1.5)])]),
        ("too large", [(alice, [OpData("producer_byte_rate", 1e30)])]),
        ("a fraction so small", [(alice, [OpData("producer_byte_rate", 7.0000001)])]),
        ("a key twice", [(alice, [OpData("producer_byte_rate", 1.0)] * 2)]),
        ("no entity", [([], set_)]),
        ("an unknown entity", [([EntityData("group", "g")], set_)]),
        ("an entity twice", [([EntityData("user", "a"), EntityData("user", "b")], [])]),
        ("an empty name", [([EntityData("user", "")], set_)]),
        ("an address and a user", [([EntityData("ip", "10.0.0.1"), *alice], set_)]),
        ("bytes of an address", [([EntityData("ip", "10.0.0.1")], set_)]),
        ("one good and one bad", [(pair, [OpData("consumer_byte_rate", 6.0)]), ([], set_)]),
    ):
        request = AlterClientQuotasRequest([AlterClientQuotasEntry(*one) for one in entries])
        for version in (0, 1):
            peer.ask(f"v{version} {label}", request, version)
            only = msgspec.structs.replace(request, validate_only=True)
            peer.ask(f"v{version} {label}, only to validate", only, version)
    for label, components, is_strict in (
        ("all", [], False),
        ("strictly nothing", [], True),
        ("users", [ComponentData("user", 2, None)], False),
        ("users alone", [ComponentData("user", 2, None)], True),
        ("one user", [ComponentData("user", 0, "alice")], False),
        ("default client ids", [ComponentData("client-id", 1, None)], False),
        ("a default with a name", [ComponentData("client-id", 1, "c")], False),
        ("any with a name", [ComponentData("client-id", 2, "c")], False),
    ):
        described = DescribeClientQuotasRequest(components, strict=is_strict)
        peer.ask(f"v1 {label} described", described, 1)
    gone = [OpData(key, 0.0, remove=True) for key in ("request_percentage", "consumer_byte_rate",
            "producer_byte_rate")]  # fmt: skip
    request = AlterClientQuotasRequest([AlterClientQuotasEntry(one, gone) for one in (alice, pair)])
    peer.ask("v1 all removed", request, 1)
    peer.ask("v1 nothing described", DescribeClientQuotasRequest([]), 1)


@case
def passwords(peer: Peer) -> None:
    """None are set."""
    for label, users in (
        ("all", None),
        ("of nobody", []),
        ("of one", [UserName("a")]),
        ("of one twice", [UserName("a"), UserName("a")]),
    ):
        peer.ask(label, DescribeUserScramCredentialsRequest(users), 0)


@case
def features(peer: Peer) -> None:
    """Levels of a feature that is none."""
    for version in range(3):
        for label, level in (("up", 1), ("off", 0), ("negative", -1)):
            request = UpdateFeaturesRequest(
                feature_updates=[FeatureUpdateKey("none.version", level)]
            )
            peer.ask(f"v{version} {label}", request, version)
        peer.ask(f"v{version} nothing", UpdateFeaturesRequest(), version)


@case
def producers(peer: Peer) -> None:
    """One producer; partitions and topics that are none."""
    create(peer, "producers")
    records = [Record(offset_delta=n, timestamp=1_000, key=b"k", value=b"v") for n in range(3)]
    batch = build_batch(records, producer_id=7, producer_epoch=2, base_sequence=0)
    peer.ask_silently(produce_request("producers", batch), 8)
    request = DescribeProducersRequest(
        [TopicRequest("producers", [0, 9]), TopicRequest("producers-missing", [0])]
    )
    peer.ask("described", request, 0)


@case
def directories(peer: Peer) -> None:
    """To a directory that is none."""
    create(peer, "directories")
    for version in range(1, 3):
        for label, topic, index in (("there", "directories", 0), ("missing", "none", 0)):
            wanted = AlterReplicaLogDir("/nowhere", [AlterReplicaLogDirTopic(topic, [index])])
            peer.ask(f"v{version} {label}", AlterReplicaLogDirsRequest([wanted]), version)


@case
def quorum(peer: Peer) -> None:
    """Of logs that have none."""
    for label, topic, indexes in (
        ("another partition", "__cluster_metadata", [1]),
        ("two partitions", "__cluster_metadata", [0, 1]),
        ("another topic", "quorum-missing", [0]),
    ):
        partitions = [RequestedPartition(index) for index in indexes]
        peer.ask(label, DescribeQuorumRequest([RequestedTopic(topic, partitions)]), 2)
    peer.ask("nothing", DescribeQuorumRequest(), 2)


@case
def unregistered(peer: Peer) -> None:
    """A broker that is none."""
    peer.ask("answer", UnregisterBrokerRequest(99), 0)
