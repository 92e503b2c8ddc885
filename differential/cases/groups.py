"""The classic groups, and their offsets."""

import time

from differential.cases.registry import PAUSE_S, READY_TRIES, case, create
from differential.peer import Peer
from strandline.protocol.messages.delete_groups import DeleteGroupsRequest
from strandline.protocol.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from strandline.protocol.messages.find_coordinator import FindCoordinatorRequest
from strandline.protocol.messages.heartbeat import HeartbeatRequest
from strandline.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from strandline.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from strandline.protocol.messages.list_groups import ListGroupsRequest
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
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from strandline.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)

SUBSCRIPTION = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"
READY = "groups-ready"
READY_GROUPS = 600


def join(group: str, member: str = "", **fields: object) -> JoinGroupRequest:
    """A request to join, with one protocol."""
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol("range", SUBSCRIPTION)],
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


def ready(peer: Peer) -> None:
    """Return once each partition of the offsets has a coordinator: groups enough have one in it."""
    groups = [f"{READY}-{number}" for number in range(READY_GROUPS)]
    for _ in range(READY_TRIES):
        peer.ask_silently(FindCoordinatorRequest(key=READY), 3)
        described = peer.ask_silently(DescribeGroupsRequest(groups=groups), 4)
        assert isinstance(described, DescribeGroupsResponse)
        if not any(one.error_code for one in described.groups):
            return
        time.sleep(PAUSE_S)
    raise TimeoutError(f"{peer.name} has no coordinators")


@case
def coordinator(peer: Peer) -> None:
    """Where a group is; keys and types that are none."""
    ready(peer)
    for version in range(4):
        peer.ask(f"v{version}", FindCoordinatorRequest(key="find"), version)
    for version in range(4, 6):
        request = FindCoordinatorRequest(coordinator_keys=["find", "find-2", ""])
        peer.ask(f"v{version}", request, version)
    peer.ask("empty key", FindCoordinatorRequest(key=""), 3)
    peer.ask("type 7", FindCoordinatorRequest(key="find", key_type=7), 3)


@case
def join_oddly(peer: Peer) -> None:
    """Requests to join that no group takes."""
    ready(peer)
    for label, request in (
        ("empty group", join("")),
        ("unknown member", join("odd", "nobody")),
        ("session too short", join("odd", session_timeout_ms=1)),
        ("session too long", join("odd", session_timeout_ms=10_000_000)),
        ("no protocols", join("odd", protocols=[])),
        ("no protocol type", join("odd", protocol_type="")),
    ):
        peer.ask(label, request, 3)


@case
def one_member(peer: Peer) -> None:
    """A group of one, from its first request to its last."""
    create(peer, "group-topic", partitions=2)
    ready(peer)
    first = peer.ask("a member id is required", join("one"), 5)
    assert isinstance(first, JoinGroupResponse)
    joined = peer.ask("joined", join("one", first.member_id), 5)
    assert isinstance(joined, JoinGroupResponse)
    generation, member = joined.generation_id, joined.member_id
    peer.ask("described while it syncs", DescribeGroupsRequest(groups=["one"]), 5)
    sync = SyncGroupRequest(
        group_id="one",
        generation_id=generation,
        member_id=member,
        assignments=[SyncGroupRequestAssignment(member, b"assigned")],
    )
    peer.ask("synced", sync, 3)
    peer.ask("synced again", sync, 3)
    peer.ask("heartbeat", HeartbeatRequest("one", generation, member), 3)
    peer.ask("heartbeat of before", HeartbeatRequest("one", generation - 1, member), 3)
    peer.ask("heartbeat of a stranger", HeartbeatRequest("one", generation, "nobody"), 3)
    peer.ask("described", DescribeGroupsRequest(groups=["one", "none", ""]), 5)
    request = DescribeGroupsRequest(["one", "none"], include_authorized_operations=True)
    for version in (3, 6):
        peer.ask(f"described with operations by v{version}", request, version)
    peer.ask("listed", ListGroupsRequest(states_filter=["Stable"]), 4)
    _commit(peer, "committed", "one", generation=generation, member=member)
    _commit(peer, "committed from outside", "one")
    _commit(peer, "committed late", "one", generation=generation - 1, member=member)
    peer.ask("delete while it lives", DeleteGroupsRequest(["one"]), 2)
    _delete_offset(peer, "delete an offset while it lives", "one")
    leave = LeaveGroupRequest(group_id="one", members=[MemberIdentity(member)])
    peer.ask("left", leave, 4)
    peer.ask("left again", leave, 4)
    peer.ask("described when empty", DescribeGroupsRequest(groups=["one"]), 5)
    _delete_offset(peer, "delete an offset", "one")
    peer.ask("deleted", DeleteGroupsRequest(["one", "none", ""]), 2)
    peer.ask("deleted again", DeleteGroupsRequest(["one"]), 2)


@case
def another_protocol(peer: Peer) -> None:
    """A second member that shares no protocol with the first."""
    ready(peer)
    first = peer.ask_silently(join("share"), 5)
    assert isinstance(first, JoinGroupResponse)
    peer.ask("joined", join("share", first.member_id), 5)
    other = [JoinGroupRequestProtocol("sticky", SUBSCRIPTION)]
    peer.ask("no common protocol", join("share", protocols=other), 3)
    peer.ask("another type", join("share", protocol_type="connect"), 3)


def _commit(
    peer: Peer, label: str, group: str, *, generation: int = -1, member: str = "", **fields: object
) -> None:
    partition = OffsetCommitRequestPartition(committed_offset=3, committed_metadata="m")
    for name, value in fields.items():
        setattr(partition, name, value)
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        topics=[OffsetCommitRequestTopic(name="group-topic", partitions=[partition])],
    )
    peer.ask(label, request, 7)


def _delete_offset(peer: Peer, label: str, group: str) -> None:
    topics = [OffsetDeleteRequestTopic("group-topic", [OffsetDeleteRequestPartition(0)])]
    peer.ask(label, OffsetDeleteRequest(group, topics), 0)


@case
def offsets(peer: Peer) -> None:
    """Commits from outside, odd ones, and what is read back in each version."""
    create(peer, "group-topic", partitions=2)
    ready(peer)
    _commit(peer, "plain", "simple")
    _commit(peer, "no such partition", "simple", partition_index=9)
    _commit(peer, "negative offset", "simple", partition_index=1, committed_offset=-5)
    _commit(peer, "long metadata", "simple", committed_metadata="m" * 5000)
    _commit(peer, "metadata at the limit", "simple", committed_metadata="m" * 4096)
    _commit(peer, "null metadata", "simple", partition_index=1, committed_metadata=None)
    _commit(peer, "empty group", "")
    _commit(peer, "a generation without members", "simple", generation=5, member="nobody")
    for version in range(1, 8):
        topics = [OffsetFetchRequestTopic("group-topic", [0, 1, 9])]
        peer.ask(f"v{version}", OffsetFetchRequest("simple", topics), version)
    for version in range(2, 8):
        peer.ask(f"v{version} all", OffsetFetchRequest("simple", None), version)
    for version in range(8, 10):
        groups = [
            OffsetFetchRequestGroup(
                "simple", topics=[OffsetFetchRequestTopics("group-topic", partition_indexes=[0, 1])]
            ),
            OffsetFetchRequestGroup("simple-missing", topics=None),
        ]
        peer.ask(f"v{version}", OffsetFetchRequest(groups=groups), version)
    peer.ask("missing group", OffsetFetchRequest("simple-missing", None), 7)
    peer.ask("offsets of an empty group", OffsetFetchRequest("", None), 7)
