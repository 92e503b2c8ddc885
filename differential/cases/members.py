"""Members of classic groups: each version, static members, a rebalance of two."""

import time

from differential.cases.groups import join, ready
from differential.cases.registry import PAUSE_S, READY_TRIES, case, create
from differential.peer import Peer
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_groups import DescribeGroupsRequest
from strandline.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from strandline.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from strandline.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from strandline.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from strandline.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from strandline.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)


def _join(peer: Peer, label: str, request: JoinGroupRequest, version: int) -> JoinGroupResponse:
    answer = peer.ask(label, request, version)
    assert isinstance(answer, JoinGroupResponse), label
    return answer


def _sync(
    group: str, joined: JoinGroupResponse, *members: str, **fields: object
) -> SyncGroupRequest:
    request = SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[SyncGroupRequestAssignment(one, b"assigned") for one in members],
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


@case
def by_each_version(peer: Peer) -> None:
    """A member joins, syncs, is described and leaves, by each version of each request."""
    ready(peer)
    for version in range(10):
        group = f"versions-{version}"
        first = _join(peer, f"v{version} join", join(group), version)
        if first.error_code == Error.MEMBER_ID_REQUIRED:
            request = join(group, first.member_id)
            first = _join(peer, f"v{version} join with its id", request, version)
        sync = _sync(group, first, first.member_id)
        peer.ask(f"v{version} sync", sync, min(version, 5))
        beat = HeartbeatRequest(group, first.generation_id, first.member_id)
        peer.ask(f"v{version} heartbeat", beat, min(version, 4))
        peer.ask(f"v{version} described", DescribeGroupsRequest([group]), min(version, 6))
        leave = LeaveGroupRequest(group, first.member_id, [MemberIdentity(first.member_id)])
        peer.ask(f"v{version} leave", leave, min(version, 5))
        peer.ask(f"v{version} leave again", leave, min(version, 5))
        peer.ask(f"v{version} leave another group", LeaveGroupRequest("no-such"), min(version, 5))


@case
def listed(peer: Peer) -> None:
    """Groups by version, state and type."""
    ready(peer)
    _join(peer, "joined", join("listed-one"), 3)
    for version in range(4):  # Without a filter, the groups of other cases are there, too.
        answer = peer.ask_silently(ListGroupsRequest(), version)
        assert isinstance(answer, ListGroupsResponse)
        peer.note(f"v{version}", [one for one in answer.groups if one.group_id == "listed-one"])
    for version in (4, 5):
        peer.ask(f"v{version}", ListGroupsRequest(states_filter=["CompletingRebalance"]), version)
    for label, states, types in (
        ("no such state", ["Sleeping"], []),
        ("in other letters", ["completingrebalance"], []),
        ("classic", ["CompletingRebalance"], ["classic"]),
        ("Classic", ["CompletingRebalance"], ["Classic"]),
        ("consumer", [], ["consumer"]),
        ("no such type", [], ["sleeping"]),
    ):
        peer.ask(label, ListGroupsRequest(states_filter=states, types_filter=types), 5)


@case
def synced_oddly(peer: Peer) -> None:
    """Other protocols than the group's, generations of before, strangers."""
    ready(peer)
    joined = _join(peer, "joined", join("sync-odd"), 3)
    for label, fields in (
        ("another type", {"protocol_type": "connect"}),
        ("another protocol", {"protocol_name": "sticky"}),
        ("a generation of before", {"generation_id": joined.generation_id - 1}),
        ("a generation to come", {"generation_id": joined.generation_id + 1}),
        ("a stranger", {"member_id": "nobody"}),
        ("no member", {"member_id": ""}),
        ("empty group", {"group_id": ""}),
        ("another group", {"group_id": "sync-missing"}),
    ):
        peer.ask(label, _sync("sync-odd", joined, joined.member_id, **fields), 5)
    peer.ask("no assignment", _sync("sync-odd", joined), 5)
    for label, group, generation, member in (
        ("heartbeat of no group", "", joined.generation_id, joined.member_id),
        ("heartbeat of another group", "sync-missing", 1, joined.member_id),
        ("heartbeat to come", "sync-odd", joined.generation_id + 1, joined.member_id),
        ("heartbeat of nobody", "sync-odd", joined.generation_id, ""),
    ):
        peer.ask(label, HeartbeatRequest(group, generation, member), 4)


@case
def static(peer: Peer) -> None:
    """A static member returns, and fences the one of before."""
    create(peer, "static-topic")
    ready(peer)
    before = _join(peer, "joined", join("static", group_instance_id="a"), 5)
    sync = _sync("static", before, before.member_id, group_instance_id="a")
    peer.ask("synced", sync, 3)
    peer.ask("described", DescribeGroupsRequest(["static"]), 5)
    request = join("static", before.member_id, group_instance_id="a")
    again = _join(peer, "joined again by its id", request, 5)
    peer.ask("synced once more", _sync("static", again, again.member_id), 3)
    after = _join(peer, "returned", join("static", group_instance_id="a"), 9)
    peer.ask("returned synced", _sync("static", after, group_instance_id="a"), 5)
    for label, member, instance in (
        ("of before", before.member_id, "a"),
        ("of before, not static", before.member_id, None),
        ("of after", after.member_id, "a"),
        ("of after, not static", after.member_id, None),
        ("of another instance", after.member_id, "b"),
        ("of nobody", "nobody", "a"),
    ):
        generation = after.generation_id
        beat = HeartbeatRequest("static", generation, member, instance)
        peer.ask(f"heartbeat {label}", beat, 4)
        sync = _sync("static", after, member_id=member, group_instance_id=instance)
        peer.ask(f"sync {label}", sync, 5)
        partition = OffsetCommitRequestPartition(committed_offset=3)
        topics = [OffsetCommitRequestTopic(name="static-topic", partitions=[partition])]
        commit = OffsetCommitRequest("static", generation, member, instance, topics=topics)
        peer.ask(f"commit {label}", commit, 8)
    request = join("static", before.member_id, group_instance_id="a")
    _join(peer, "join of before", request, 9)
    _join(peer, "join of nobody", join("static", "nobody", group_instance_id="b"), 9)


@case
def static_members_leave(peer: Peer) -> None:
    """By the id of the instance, of the member, of both."""
    ready(peer)
    joined = _join(peer, "joined", join("static-leave", group_instance_id="a"), 5)
    for label, member, instance in (
        ("another instance", "", "b"),
        ("another member", "nobody", "a"),
        ("neither", "", None),
        ("by its instance", "", "a"),
        ("by its instance again", "", "a"),
        ("by its id", joined.member_id, None),
    ):
        request = LeaveGroupRequest("static-leave", members=[MemberIdentity(member, instance)])
        peer.ask(label, request, 5)
    peer.ask("no members", LeaveGroupRequest("static-leave", members=[]), 4)
    peer.ask("described", DescribeGroupsRequest(["static-leave"]), 6)


def _until_it_rebalances(peer: Peer, group: str, joined: JoinGroupResponse) -> None:
    beat = HeartbeatRequest(group, joined.generation_id, joined.member_id)
    for _ in range(READY_TRIES):
        answer = peer.ask_silently(beat, 4)
        assert isinstance(answer, HeartbeatResponse)
        if answer.error_code == Error.REBALANCE_IN_PROGRESS:
            return
        time.sleep(PAUSE_S)
    raise TimeoutError(f"{peer.name}: group {group} does not rebalance")


@case
def two_members(peer: Peer) -> None:
    """The second joins, both sync, the second leaves; each has a connection of its own."""
    ready(peer)
    other = peer.another()
    first = _join(peer, "first joined", join("two"), 3)
    peer.ask("first synced", _sync("two", first, first.member_id), 3)
    wanted = _join(other, "second asked", join("two"), 5)
    other.send(join("two", wanted.member_id), 5)
    _until_it_rebalances(peer, "two", first)
    peer.ask("heartbeat while it rebalances", HeartbeatRequest("two", 1, first.member_id), 4)
    peer.ask("sync while it rebalances", _sync("two", first, first.member_id), 3)
    peer.ask("described while it rebalances", DescribeGroupsRequest(["two"]), 5)
    first = _join(peer, "first joined again", join("two", first.member_id), 5)
    second = other.receive("second joined")
    peer.ask("described while it syncs", DescribeGroupsRequest(["two"]), 5)
    assert isinstance(second, JoinGroupResponse)
    other.send(_sync("two", second), 3)
    peer.ask("both synced: first", _sync("two", first, first.member_id, second.member_id), 3)
    other.receive("both synced: second")
    peer.ask("described when stable", DescribeGroupsRequest(["two"]), 5)
    other.ask(
        "second left", LeaveGroupRequest("two", members=[MemberIdentity(second.member_id)]), 4
    )
    peer.ask("first hears of it", HeartbeatRequest("two", 2, first.member_id), 4)
    first = _join(peer, "first alone", join("two", first.member_id), 5)
    peer.ask("first synced alone", _sync("two", first, first.member_id), 3)
    peer.ask("first left", LeaveGroupRequest("two", members=[MemberIdentity(first.member_id)]), 4)
