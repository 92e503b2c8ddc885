"""Consumer groups over the Kafka protocol, in a whole cluster, through a coordinator's loss."""

from collections.abc import Iterator
from contextlib import closing
from uuid import UUID

import pytest
from tests.broker.cluster_world import ClusterWorld

from strandline.broker.coordinators import coordinator_host
from strandline.broker.coordinators.coordinator_shard import CoordinatorShard
from strandline.controller.commands import (
    AlterConfigs,
    ConfigChange,
    ConfigOperation,
    ResourceChanges,
    ResourceResults,
    ResourceType,
)
from strandline.controller.names import OFFSETS_TOPIC
from strandline.coordinator.partitioning import partition_for
from strandline.protocol.errors import Error
from strandline.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from strandline.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from strandline.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from strandline.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from strandline.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from strandline.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from strandline.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from strandline.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from strandline.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from strandline.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from strandline.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from strandline.protocol.table import NO_ID

PARTITIONS = 4
"""Of `__consumer_offsets`."""

EXPIRY_INTERVAL_MS = 5_000

RETRIED = (Error.NOT_COORDINATOR, Error.COORDINATOR_LOAD_IN_PROGRESS)


def make_cluster() -> ClusterWorld:
    """Four brokers with a topic."""
    world = ClusterWorld()
    world.until_started()
    few = ConfigChange("offsets.topic.num.partitions", ConfigOperation.SET, str(PARTITIONS))
    answer = world.submit(AlterConfigs((ResourceChanges(ResourceType.BROKER, "", (few,)),)))
    assert isinstance(answer, ResourceResults) and answer.resources[0].error_code == 0
    world.create_topic("flights", partitions=3)
    return world


@pytest.fixture(scope="module")
def shared() -> Iterator[ClusterWorld]:
    """For tests that use groups of their own and leave all brokers up."""
    world = make_cluster()
    yield world
    world.close()


@pytest.fixture
def cluster() -> Iterator[ClusterWorld]:
    """The same, for tests that do worse to it."""
    world = make_cluster()
    yield world
    world.close()


def find(world: ClusterWorld, group: str, *, at: int = 1) -> int:
    """The coordinator as a client finds it: it asks until there is one that is ready."""
    for _ in range(200):
        request = FindCoordinatorRequest(coordinator_keys=[group])
        (found,) = world.ask(at, request, FindCoordinatorResponse, 4).coordinators
        if found.error_code != Error.NONE:
            assert found.error_code == Error.COORDINATOR_NOT_AVAILABLE, found
        elif world.hosts[found.node_id].program is not None:
            asked = DescribeGroupsRequest(groups=[group])
            (one,) = world.ask(found.node_id, asked, DescribeGroupsResponse, 5).groups
            if one.error_code not in RETRIED:
                return found.node_id
        world.advance(50)
    raise AssertionError("no coordinator is found")


class Consumer:
    """A member of a group, with its generation."""

    def __init__(self, world: ClusterWorld, group: str, *, version: int = 9) -> None:
        self.world = world
        self.group = group
        self.version = version
        self.at = find(world, group)
        self.member_id = ""
        self.generation = -1

    def join(self) -> JoinGroupResponse:
        """Join alone, as a client does: first for an id, where the version has that."""
        answer = self._join()
        if answer.error_code == Error.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            answer = self._join()
        assert answer.error_code == Error.NONE, answer
        self.member_id, self.generation = answer.member_id, answer.generation_id
        return answer

    def _join(self) -> JoinGroupResponse:
        return self.world.ask(self.at, self.join_request(), JoinGroupResponse, self.version)

    def join_request(self) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=30_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"wants")],
        )

    def sync(self, assignment: bytes) -> bytes:
        """Assign to oneself."""
        answer = self._sync(assignment)
        assert answer.error_code == Error.NONE, answer
        return answer.assignment

    def _sync(self, assignment: bytes) -> SyncGroupResponse:
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            assignments=[
                SyncGroupRequestAssignment(member_id=self.member_id, assignment=assignment)
            ],
        )
        return self.world.ask(self.at, request, SyncGroupResponse, min(self.version, 5))

    def heartbeat(self) -> int:
        request = HeartbeatRequest(
            group_id=self.group, generation_id=self.generation, member_id=self.member_id
        )
        version = min(self.version, 4)
        return self.world.ask(self.at, request, HeartbeatResponse, version).error_code

    def commit(self, offset: int, *, partition: int = 0, topic: str = "flights") -> int:
        return commit(
            self.world,
            self.at,
            self.group,
            offset,
            partition=partition,
            topic=topic,
            member_id=self.member_id,
            generation=self.generation,
        )

    def leave(self) -> int:
        request = LeaveGroupRequest(
            group_id=self.group,
            member_id=self.member_id,
            members=[MemberIdentity(member_id=self.member_id)],
        )
        version = min(self.version, 5)
        answer = self.world.ask(self.at, request, LeaveGroupResponse, version)
        return answer.members[0].error_code if answer.members else answer.error_code


def commit(
    world: ClusterWorld,
    at: int,
    group: str,
    offset: int,
    *,
    partition: int = 0,
    topic: str = "flights",
    topic_id: UUID | None = None,
    member_id: str = "",
    generation: int = -1,
    metadata: str = "",
) -> int:
    """Commit one offset: the error code."""
    row = OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata=metadata
    )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=[OffsetCommitRequestTopic(name=topic, topic_id=topic_id or NO_ID, partitions=[row])],
    )
    version = 8 if topic_id is None else 10
    answer = world.ask(at, request, OffsetCommitResponse, version)
    return answer.topics[0].partitions[0].error_code


def fetch(world: ClusterWorld, at: int, group: str, *, topic: str = "flights") -> dict[int, int]:
    """{partition: offset} of a topic of three partitions."""
    asked = OffsetFetchRequestTopics(name=topic, partition_indexes=[0, 1, 2])
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=[asked])], require_stable=True
    )
    (found,) = world.ask(at, request, OffsetFetchResponse, 8).groups
    assert found.error_code == Error.NONE, found
    return {one.partition_index: one.committed_offset for one in found.topics[0].partitions}


def describe(world: ClusterWorld, at: int, group: str) -> DescribedGroup:
    request = DescribeGroupsRequest(groups=[group])
    (found,) = world.ask(at, request, DescribeGroupsResponse, 6).groups
    return found


def test_every_broker_names_the_same_coordinator(shared: ClusterWorld) -> None:
    coordinator = find(shared, "same")
    index = partition_for("same", partition_count=PARTITIONS)
    assert coordinator == shared.leader_of(OFFSETS_TOPIC, index)
    for broker in shared.hosts:
        shared.until(lambda broker=broker: find(shared, "same", at=broker) == coordinator)
    old = shared.ask(coordinator, FindCoordinatorRequest(key="same"), FindCoordinatorResponse, 2)
    assert (old.error_code, old.node_id, old.host) == (
        Error.NONE,
        coordinator,
        f"kafka-{coordinator}",
    )
    assert old.error_message == "NONE"


@pytest.mark.parametrize(
    ("key_type", "error"), [(1, Error.UNSUPPORTED_VERSION), (2, Error.INVALID_REQUEST)]
)
def test_there_are_coordinators_for_groups_only(
    shared: ClusterWorld, key_type: int, error: Error
) -> None:
    request = FindCoordinatorRequest(coordinator_keys=["x"], key_type=key_type)
    (found,) = shared.ask(1, request, FindCoordinatorResponse, 6).coordinators
    assert (found.error_code, found.node_id) == (error, -1)


@pytest.mark.parametrize("version", [0, 2, 3, 4, 5, 6, 7, 8, 9])
def test_a_member_joins_works_and_leaves(shared: ClusterWorld, version: int) -> None:
    group = f"alone-{version}"
    consumer = Consumer(shared, group, version=version)
    answer = consumer.join()
    assert answer.leader == consumer.member_id
    assert [member.metadata for member in answer.members] == [b"wants"]
    assert consumer.sync(b"all of it") == b"all of it"
    assert consumer.heartbeat() == Error.NONE
    assert consumer.commit(41, partition=1) == Error.NONE
    assert fetch(shared, consumer.at, group) == {0: -1, 1: 41, 2: -1}
    request = DescribeGroupsRequest(groups=[group], include_authorized_operations=True)
    (found,) = shared.ask(consumer.at, request, DescribeGroupsResponse, 5).groups
    assert found.authorized_operations == 3400
    assert consumer.leave() == Error.NONE
    assert describe(shared, consumer.at, group).group_state == "Empty"


def test_a_second_member_makes_the_first_join_again(shared: ClusterWorld) -> None:
    first = Consumer(shared, "pair")
    first.join()
    first.sync(b"all")
    second = Consumer(shared, "pair")
    second.member_id = second._join().member_id
    joining = shared.send(second.at, second.join_request(), 9)
    assert first.heartbeat() == Error.REBALANCE_IN_PROGRESS
    assert not joining.is_answered
    again = first.join()
    shared.until(lambda: joining.is_answered)
    joined = joining.answer(JoinGroupResponse)
    assert (again.generation_id, joined.generation_id) == (2, 2)
    assert (again.leader, joined.leader) == (first.member_id, first.member_id)
    assert {one.member_id for one in again.members} == {first.member_id, second.member_id}
    assert joined.members == []


@pytest.mark.parametrize("version", [0, 5, 9])
def test_a_coordinator_that_still_reads_its_log_sends_no_member_away(
    shared: ClusterWorld, version: int
) -> None:
    """As in Kafka: aiokafka stops for good when a heartbeat or a sync is told of the loading."""
    consumer = Consumer(shared, f"loading-{version}", version=version)
    consumer.join()
    consumer.sync(b"all")
    shard = shared.broker(consumer.at).coordinator.shard_of(consumer.group)
    shard.is_loaded = False
    assert consumer.heartbeat() == Error.NONE
    assert consumer._sync(b"all").error_code == Error.REBALANCE_IN_PROGRESS
    assert consumer._join().error_code == Error.COORDINATOR_LOAD_IN_PROGRESS
    assert consumer.commit(1) == Error.COORDINATOR_LOAD_IN_PROGRESS
    shard.is_loaded = True
    assert consumer.heartbeat() == Error.NONE


def test_another_broker_says_that_it_is_not_the_coordinator(shared: ClusterWorld) -> None:
    consumer = Consumer(shared, "elsewhere")
    other = next(one for one in shared.hosts if one != consumer.at)
    consumer.at = other
    assert consumer._join().error_code == Error.NOT_COORDINATOR
    assert consumer.heartbeat() == Error.NOT_COORDINATOR
    assert consumer.commit(1) == Error.NOT_COORDINATOR
    assert consumer.leave() == Error.NOT_COORDINATOR
    assert describe(shared, other, "elsewhere").error_code == Error.NOT_COORDINATOR
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="elsewhere")])
    (found,) = shared.ask(other, request, OffsetFetchResponse, 8).groups
    assert found.error_code == Error.NOT_COORDINATOR
    asked = OffsetFetchRequestTopic(name="flights", partition_indexes=[0])
    old = OffsetFetchRequest(group_id="elsewhere", topics=[asked])
    answer = shared.ask(other, old, OffsetFetchResponse, 1)
    assert answer.topics[0].partitions[0].error_code == Error.NOT_COORDINATOR
    answer = shared.ask(other, old, OffsetFetchResponse, 5)
    assert answer.error_code == Error.NOT_COORDINATOR
    # aiokafka looks only here, and takes no row for an offset that nobody committed.
    assert answer.topics[0].partitions[0].error_code == Error.NOT_COORDINATOR
    deleting = DeleteGroupsRequest(groups_names=["elsewhere"])
    (result,) = shared.ask(other, deleting, DeleteGroupsResponse, 2).results
    assert result.error_code == Error.NOT_COORDINATOR


def test_commits_name_partitions_that_exist(shared: ClusterWorld) -> None:
    at = find(shared, "checked")
    codes = [
        commit(shared, at, "checked", 1, topic="unknown"),
        commit(shared, at, "checked", 1, partition=3),
        commit(shared, at, "checked", 1, partition=-1),
        commit(shared, at, "checked", 1, topic_id=UUID(int=77)),
        commit(shared, at, "checked", 1, topic_id=NO_ID),
        commit(shared, at, "checked", 1, metadata="x" * 30_000),
        commit(shared, at, "checked", 1),
    ]
    unknown = Error.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == [
        *(unknown, unknown, unknown),
        *(Error.UNKNOWN_TOPIC_ID, Error.UNKNOWN_TOPIC_ID),
        Error.OFFSET_METADATA_TOO_LARGE,
        Error.NONE,
    ]


def test_topics_may_be_named_by_id(shared: ClusterWorld) -> None:
    at = find(shared, "by-id")
    topic_id = shared.broker(at).services.cluster.topics["flights"].id
    assert commit(shared, at, "by-id", 12, topic="", topic_id=topic_id) == Error.NONE
    asked = OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0])
    unknown = OffsetFetchRequestTopics(topic_id=UUID(int=77), partition_indexes=[0])
    everything = OffsetFetchRequestGroup(group_id="by-id", topics=None)
    request = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(group_id="by-id", topics=[asked, unknown]),
            everything,
        ]
    )
    first, second = shared.ask(at, request, OffsetFetchResponse, 10).groups
    assert first.topics[0].partitions[0].committed_offset == 12
    assert first.topics[1].partitions[0].error_code == Error.UNKNOWN_TOPIC_ID
    assert [topic.topic_id for topic in second.topics] == [topic_id]


def test_old_clients_fetch_one_group(shared: ClusterWorld) -> None:
    at = find(shared, "old")
    assert commit(shared, at, "old", 5) == Error.NONE
    asked = OffsetFetchRequestTopic(name="flights", partition_indexes=[0, 2])
    for version in range(1, 8):
        request = OffsetFetchRequest(group_id="old", topics=[asked])
        (topic,) = shared.ask(at, request, OffsetFetchResponse, version).topics
        offsets = {one.partition_index: one.committed_offset for one in topic.partitions}
        assert offsets == {0: 5, 2: -1}
    everything = OffsetFetchRequest(group_id="old", topics=None)
    (topic,) = shared.ask(at, everything, OffsetFetchResponse, 7).topics
    assert [one.committed_offset for one in topic.partitions] == [5]


def test_groups_are_listed_described_and_deleted(shared: ClusterWorld) -> None:
    consumer = Consumer(shared, "shown")
    consumer.join()
    consumer.sync(b"work")
    listed = {
        one.group_id: one
        for broker in shared.hosts
        for one in shared.ask(broker, ListGroupsRequest(), ListGroupsResponse, 5).groups
    }
    assert (listed["shown"].group_state, listed["shown"].group_type) == ("Stable", "classic")
    for states, types, is_there in (
        (["stable"], [], True),
        (["Empty"], [], False),
        ([], ["x"], False),
    ):
        request = ListGroupsRequest(states_filter=states, types_filter=types)
        groups = shared.ask(consumer.at, request, ListGroupsResponse, 5).groups
        assert any(one.group_id == "shown" for one in groups) == is_there
    found = describe(shared, consumer.at, "shown")
    (member,) = found.members
    assert (found.group_state, found.protocol_data) == ("Stable", "range")
    assert (member.client_id, member.client_host) == ("tester", "/10.1.2.3")
    assert (member.member_metadata, member.member_assignment) == (b"wants", b"work")

    def delete() -> list[int]:
        request = DeleteGroupsRequest(groups_names=["shown", "", "shown"])
        results = shared.ask(consumer.at, request, DeleteGroupsResponse, 3).results
        return [one.error_code for one in results if one.group_id == "shown"]

    assert delete() == [Error.NON_EMPTY_GROUP]
    consumer.leave()
    assert delete() == [Error.NONE]
    assert delete() == [Error.GROUP_ID_NOT_FOUND]
    assert describe(shared, consumer.at, "shown").error_code == Error.GROUP_ID_NOT_FOUND
    old = shared.ask(
        consumer.at, DescribeGroupsRequest(groups=["shown"]), DescribeGroupsResponse, 5
    )
    assert (old.groups[0].error_code, old.groups[0].group_state) == (Error.NONE, "Dead")


def test_the_empty_group_is_committed_to_described_and_deleted_but_not_joined(
    shared: ClusterWorld,
) -> None:
    consumer = Consumer(shared, "")
    for _ in range(2):
        assert consumer._join().error_code == Error.INVALID_GROUP_ID
        assert consumer._sync(b"").error_code == Error.INVALID_GROUP_ID
        assert consumer.heartbeat() == Error.INVALID_GROUP_ID
        assert consumer.leave() == Error.INVALID_GROUP_ID
        assert commit(shared, consumer.at, "", 5) == Error.NONE
    assert describe(shared, consumer.at, "").group_state == "Empty"
    assert fetch(shared, consumer.at, "")[0] == 5
    request = DeleteGroupsRequest(groups_names=[""])
    (deleted,) = shared.ask(consumer.at, request, DeleteGroupsResponse, 2).results
    assert deleted.error_code == Error.NONE
    assert describe(shared, consumer.at, "").error_code == Error.GROUP_ID_NOT_FOUND


def test_an_assignment_larger_than_a_record_may_be_is_refused(shared: ClusterWorld) -> None:
    consumer = Consumer(shared, "large")
    consumer.join()
    assert consumer._sync(b"x" * 1_100_000).error_code == Error.UNKNOWN_SERVER_ERROR
    assert consumer.heartbeat() == Error.REBALANCE_IN_PROGRESS
    consumer.join()
    assert consumer.sync(b"x" * 1_000_000) == b"x" * 1_000_000
    assert describe(shared, consumer.at, "large").group_state == "Stable"


def test_a_topic_created_anew_has_no_committed_offsets(shared: ClusterWorld) -> None:
    shared.create_topic("again", partitions=3)
    at = find(shared, "renewed")
    assert commit(shared, at, "renewed", 9, topic="again") == Error.NONE
    deleting = DeleteTopicsRequest(topics=[DeleteTopicState(name="again")])
    shared.ask(at, deleting, DeleteTopicsResponse, 6)
    shared.create_topic("again", partitions=3)
    assert fetch(shared, at, "renewed", topic="again") == {0: -1, 1: -1, 2: -1}


def test_a_silent_member_is_put_out(shared: ClusterWorld) -> None:
    consumer = Consumer(shared, "silent")
    consumer.join()
    consumer.sync(b"work")
    shared.advance(9_000)
    assert consumer.heartbeat() == Error.NONE
    shared.advance(9_900)
    assert consumer.heartbeat() == Error.NONE
    shared.advance(10_001)
    assert consumer.heartbeat() == Error.UNKNOWN_MEMBER_ID


def test_offsets_are_looked_at_again_after_a_look_that_failed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(coordinator_host, "OFFSETS_EXPIRY_INTERVAL_MS", EXPIRY_INTERVAL_MS)
    looks: list[CoordinatorShard] = []

    def fail(shard: CoordinatorShard) -> None:
        looks.append(shard)
        raise RuntimeError("out of order")

    monkeypatch.setattr(CoordinatorShard, "expire", fail)
    with closing(make_cluster()) as world:
        find(world, "any")
        world.advance(EXPIRY_INTERVAL_MS + 1_000)
        failed = len(looks)
        assert failed and "offsets of groups" in caplog.text
        world.advance(EXPIRY_INTERVAL_MS)
        assert len(looks) >= 2 * failed


def test_another_coordinator_goes_on_where_a_killed_one_stopped(cluster: ClusterWorld) -> None:
    consumer = Consumer(cluster, "moving")
    consumer.join()
    consumer.sync(b"all of it")
    for offset in range(20):
        assert consumer.commit(offset) == Error.NONE
    killed = consumer.at
    cluster.hosts[killed].kill()
    alive = next(one for one in cluster.hosts if one != killed)
    consumer.at = find(cluster, "moving", at=alive)
    assert fetch(cluster, consumer.at, "moving") == {0: 19, 1: -1, 2: -1}
    assert consumer.heartbeat() == Error.NONE, "its session has outlived the coordinator"
    assert consumer.sync(b"") == b"all of it"
    assert consumer.commit(20) == Error.NONE
