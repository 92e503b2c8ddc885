"""A group of one: it joins, commits, and joins again where it is told that it is no member.

Source: kafka-protocol reference 8.2; KIP-394."""

import pytest
from tests.client.fake_cluster import FakeCluster, FakeTransport

from strandline.base.errors import ApiError
from strandline.client.cluster import Client
from strandline.client.group_member import GroupMember
from strandline.protocol.consumer import decode_assignment
from strandline.protocol.errors import Error
from strandline.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from strandline.protocol.messages.find_coordinator import FindCoordinatorResponse
from strandline.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from strandline.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from strandline.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from strandline.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from strandline.protocol.table import Message


class Coordinator:
    """Of one group, at broker 2 until it moves; `refusals`: what the next commits get."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.broker = 2
        self.member, self.generation, self.joins = "", 0, 0
        self.offsets: dict[int, int] = {}
        self.refusals: list[int] = []
        self.is_deleted = False
        cluster.extra = {
            "FindCoordinator": lambda *_: FindCoordinatorResponse(node_id=self.broker),
            "JoinGroup": self.join,
            "SyncGroup": self.sync,
            "OffsetCommit": self.commit,
            "LeaveGroup": self.leave,
            "DeleteGroups": self.delete,
        }

    def join(self, _: FakeCluster, broker: int, request: Message) -> Message:
        assert isinstance(request, JoinGroupRequest) and broker == self.broker
        if not request.member_id:
            self.member = f"m-{self.joins}"
            return JoinGroupResponse(error_code=Error.MEMBER_ID_REQUIRED, member_id=self.member)
        if request.member_id != self.member:
            return JoinGroupResponse(error_code=Error.UNKNOWN_MEMBER_ID)
        self.joins += 1
        self.generation += 1
        return JoinGroupResponse(
            generation_id=self.generation, member_id=self.member, leader=self.member
        )

    def sync(self, _: FakeCluster, broker: int, request: Message) -> Message:
        assert isinstance(request, SyncGroupRequest)
        assert (request.member_id, request.generation_id) == (self.member, self.generation)
        (given,) = request.assignments
        (topic,) = decode_assignment(given.assignment).assigned_partitions
        assert (topic.topic, topic.partitions) == ("t", [0, 1])
        return SyncGroupResponse(assignment=given.assignment)

    def commit(self, _: FakeCluster, broker: int, request: Message) -> Message:
        assert isinstance(request, OffsetCommitRequest)
        (topic,) = request.topics
        code = self.refusals.pop(0) if self.refusals else 0
        if broker != self.broker:
            code = Error.NOT_COORDINATOR
        elif (request.member_id, request.generation_id_or_member_epoch) != (
            self.member,
            self.generation,
        ):
            code = code or Error.ILLEGAL_GENERATION
        if not code:
            self.offsets.update(
                {one.partition_index: one.committed_offset for one in topic.partitions}
            )
        rows = [
            OffsetCommitResponsePartition(one.partition_index, code) for one in topic.partitions
        ]
        return OffsetCommitResponse(topics=[OffsetCommitResponseTopic("t", partitions=rows)])

    def leave(self, _: FakeCluster, broker: int, request: Message) -> Message:
        assert isinstance(request, LeaveGroupRequest)
        assert [one.member_id for one in request.members] == [self.member]
        self.member = ""
        return LeaveGroupResponse()

    def delete(self, _: FakeCluster, broker: int, request: Message) -> Message:
        assert isinstance(request, DeleteGroupsRequest)
        self.is_deleted = not self.member
        return DeleteGroupsResponse(results=[DeletableGroupResult("g")])


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def coordinator(cluster: FakeCluster) -> Coordinator:
    return Coordinator(cluster)


@pytest.fixture
def member(coordinator: Coordinator, cluster: FakeCluster) -> GroupMember:
    client = Client(cluster.bootstrap, transport=FakeTransport(cluster))
    return GroupMember(client, "g", "t", 2)


def test_it_joins_once_and_commits(coordinator: Coordinator, member: GroupMember) -> None:
    member.commit({0: 7})
    member.commit({0: 9, 1: 3})
    assert (coordinator.offsets, coordinator.joins, member.join_count) == ({0: 9, 1: 3}, 1, 1)


def test_it_goes_on_as_the_same_member_where_the_coordinator_has_moved(
    coordinator: Coordinator, member: GroupMember
) -> None:
    member.commit({0: 7})
    coordinator.broker = 3
    member.commit({0: 8})
    assert (coordinator.offsets, member.join_count) == ({0: 8}, 1)


def test_it_looks_for_its_coordinator_anew_where_that_is_gone(
    coordinator: Coordinator, member: GroupMember, cluster: FakeCluster
) -> None:
    member.commit({0: 7})
    cluster.faults["OffsetCommit"] = ["die"]
    coordinator.broker = 3
    member.commit({0: 8})
    assert (coordinator.offsets, member.join_count) == ({0: 8}, 1)


@pytest.mark.parametrize(
    "code", [Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION, Error.REBALANCE_IN_PROGRESS]
)
def test_it_joins_again_where_it_is_no_member_any_more(
    coordinator: Coordinator, member: GroupMember, code: int
) -> None:
    member.commit({0: 7})
    coordinator.refusals = [code]
    member.commit({0: 8})
    assert (coordinator.offsets, member.join_count) == ({0: 8}, 2)


def test_what_is_refused_for_good_is_told(coordinator: Coordinator, member: GroupMember) -> None:
    coordinator.refusals = [Error.GROUP_AUTHORIZATION_FAILED]
    with pytest.raises(ApiError, match="group g"):
        member.commit({0: 7})
    assert coordinator.offsets == {}


def test_it_leaves_nothing_behind(coordinator: Coordinator, member: GroupMember) -> None:
    member.commit({0: 7})
    member.leave()
    assert coordinator.is_deleted
