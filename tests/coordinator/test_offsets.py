"""Committed offsets: who may commit, when they are in force, when they end (KIP-211, KIP-496)."""

from uuid import UUID

import pytest
from tests.coordinator.group_world import GROUP, World

from strandline.coordinator.answers import (
    CommitAnswer,
    DeleteAnswer,
    HeartbeatAnswer,
    LeaveAnswer,
    SyncAnswer,
)
from strandline.coordinator.log_records import decode_log_record
from strandline.coordinator.requests import (
    CommitOffsets,
    DeleteGroup,
    Heartbeat,
    LeaveGroup,
    LeavingMember,
    OffsetToCommit,
    SyncGroup,
)
from strandline.protocol.consumer import ConsumerProtocolSubscription, encode_subscription
from strandline.protocol.errors import Error

DAY_MS = 86_400_000
AT_FIVE = OffsetToCommit("flights", 0, 5)


def committed(world: World, topic: str = "flights", partition: int = 0) -> int | None:
    found = world.coordinator.committed(GROUP).get((topic, partition))
    return found.offset if found is not None else None


def expire(world: World) -> None:
    world.perform(world.coordinator.expire(now_ms=world.now_ms))


def test_an_offset_is_in_force_once_it_is_committed() -> None:
    world = World(holds_writes=True)
    token = world.commit(AT_FIVE)
    assert committed(world) is None and world.answer_of(token) is None
    world.settle()
    assert committed(world) == 5
    assert world.commit_errors(token) == [0]


def test_the_empty_group_id_has_offsets_and_no_members() -> None:
    """Old consumers commit under it; nobody joins it, before and after such a commit."""
    world = World()
    for _ in range(2):
        joining = world.join(group="")
        assert world.joined(joining).error_code == Error.INVALID_GROUP_ID
        for request in (
            SyncGroup(token=world.next_token(), group="", generation=1, member_id="m"),
            Heartbeat(token=world.next_token(), group="", generation=1, member_id="m"),
            LeaveGroup(token=world.next_token(), group="", members=(LeavingMember("m", None),)),
        ):
            world.feed(request)
            answer = world.answers[request.token]
            assert isinstance(answer, SyncAnswer | HeartbeatAnswer | LeaveAnswer)
            assert answer.error_code == Error.INVALID_GROUP_ID
        commit = CommitOffsets(
            token=world.next_token(), group="", offsets=(OffsetToCommit("flights", 0, 5),)
        )
        world.feed(commit)
        answer = world.answers[commit.token]
        assert isinstance(answer, CommitAnswer)
        assert [one.error_code for one in answer.partitions] == [Error.NONE]
    assert world.coordinator.committed("")["flights", 0].offset == 5
    world.feed(DeleteGroup(token=99, group=""))
    assert world.answers[99] == DeleteAnswer(Error.NONE)


def test_an_offset_that_cannot_be_written_is_not_in_force() -> None:
    world = World(holds_writes=True)
    token = world.commit(AT_FIVE)
    world.settle(Error.NOT_LEADER_OR_FOLLOWER)
    assert committed(world) is None
    assert world.commit_errors(token) == [Error.NOT_COORDINATOR]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Error.NOT_ENOUGH_REPLICAS, Error.COORDINATOR_NOT_AVAILABLE),
        (Error.MESSAGE_TOO_LARGE, Error.INVALID_COMMIT_OFFSET_SIZE),
        (Error.KAFKA_STORAGE_ERROR, Error.NOT_COORDINATOR),
    ],
)
def test_clients_are_told_what_they_know_how_to_act_on(error: Error, told: Error) -> None:
    world = World(holds_writes=True)
    token = world.commit(AT_FIVE)
    world.settle(error)
    assert world.commit_errors(token) == [told]


def test_offsets_survive_the_coordinator_with_everything_beside_them() -> None:
    world = World()
    topic_id = UUID(int=7)
    world.commit(OffsetToCommit("flights", 3, 9, leader_epoch=4, metadata="m", topic_id=topic_id))
    before = world.coordinator.committed(GROUP)
    world.restart()
    assert world.coordinator.committed(GROUP) == before
    assert before["flights", 3].topic_id == topic_id
    assert before["flights", 3].leader_epoch == 4


def test_metadata_that_is_too_long_is_refused_and_the_rest_is_taken() -> None:
    world = World()
    token = world.commit(OffsetToCommit("flights", 1, 1, metadata="x" * 30_000), AT_FIVE)
    assert world.commit_errors(token) == [Error.OFFSET_METADATA_TOO_LARGE, 0]
    token = world.commit(OffsetToCommit("flights", 1, 1, metadata="x" * 4_096))
    assert world.commit_errors(token) == [0]
    token = world.commit(OffsetToCommit("flights", 1, 1, metadata="x" * 4_097))
    assert world.commit_errors(token) == [Error.OFFSET_METADATA_TOO_LARGE]


@pytest.mark.parametrize("character", ["a", "\u00e9", "\u20ac", "\U0001f600"])
def test_metadata_is_counted_in_utf_16_units_as_in_kafka(character: str) -> None:
    world = World()
    longest = 4_096 // (len(character.encode("utf-16-le")) // 2)
    for count, error in ((longest, Error.NONE), (longest + 1, Error.OFFSET_METADATA_TOO_LARGE)):
        commit = CommitOffsets(
            token=world.next_token(),
            group=GROUP,
            offsets=(OffsetToCommit("flights", 0, 5, metadata=character * count),),
        )
        world.feed(commit)
        answer = world.answers[commit.token]
        assert isinstance(answer, CommitAnswer)
        assert answer.partitions[0].error_code == error


def test_only_members_of_this_generation_commit_to_a_group_with_members() -> None:
    world = World()
    group = world.stable(1)
    member = group.leader

    def code(member_id: str, generation: int) -> int:
        token = world.commit(AT_FIVE, member_id=member_id, generation=generation)
        return world.commit_errors(token)[0]

    assert code(member, 1) == 0
    assert code(member, 2) == Error.ILLEGAL_GENERATION
    assert code("stranger", 1) == Error.UNKNOWN_MEMBER_ID
    assert code("", -1) == Error.UNKNOWN_MEMBER_ID, "not from outside while there are members"


def test_a_commit_keeps_a_member_alive() -> None:
    world = World()
    group = world.stable(1)
    for _ in range(4):
        world.advance(9_000)
        world.commit(AT_FIVE, member_id=group.leader, generation=1)
    assert world.state == "Stable"


def test_nobody_commits_between_join_and_assignment() -> None:
    world = World()
    member_id = world.new_id()
    world.join(member_id)
    world.finish_join()
    token = world.commit(AT_FIVE, member_id=member_id, generation=1)
    assert world.commit_errors(token) == [Error.REBALANCE_IN_PROGRESS]


def test_members_may_commit_while_the_next_join_phase_runs() -> None:
    world = World()
    group = world.stable(2)
    world.join(group.leader)
    token = world.commit(AT_FIVE, member_id=group.followers[0], generation=1)
    assert world.commit_errors(token) == [0]


def test_a_generation_of_a_group_that_is_gone_is_refused() -> None:
    world = World()
    token = world.commit(AT_FIVE, member_id="x", generation=3)
    assert world.commit_errors(token) == [Error.ILLEGAL_GENERATION]
    assert world.state == "none"


def test_offsets_of_an_empty_group_end_after_the_retention() -> None:
    world = World()
    group = world.stable(1)
    world.commit(AT_FIVE, member_id=group.leader, generation=1)
    world.leave(LeavingMember(group.leader))
    world.advance(7 * DAY_MS - 1)
    expire(world)
    assert committed(world) == 5
    world.advance(1)
    expire(world)
    assert world.state == "none"
    assert [value for _, value in world.log[-2:]] == [None, None]
    world.restart()
    assert world.state == "none"


def test_the_retention_runs_from_the_last_leave_or_from_a_later_commit() -> None:
    world = World()
    group = world.stable(1)
    world.commit(AT_FIVE, member_id=group.leader, generation=1)
    world.now_ms += DAY_MS
    world.leave(LeavingMember(group.leader))
    world.advance(7 * DAY_MS - 1)
    world.commit(OffsetToCommit("other", 0, 8))
    expire(world)
    assert (committed(world), committed(world, "other")) == (5, 8)
    world.advance(1)
    expire(world)
    assert (committed(world), committed(world, "other")) == (None, 8)
    world.advance(7 * DAY_MS - 1)
    expire(world)
    assert committed(world, "other") is None


def test_offsets_of_topics_that_members_read_do_not_end() -> None:
    world = World()
    wants = encode_subscription(ConsumerProtocolSubscription(topics=["flights"]))
    token = world.join(knows_member_ids=False, protocols=(("range", wants),))
    world.finish_join()
    member_id = world.joined(token).member_id
    world.sync(member_id, 1)
    other = OffsetToCommit("other", 0, 8)
    world.commit(AT_FIVE, other, member_id=member_id, generation=1)
    world.now_ms += 8 * DAY_MS
    expire(world)
    assert (committed(world), committed(world, "other")) == (5, None)


def test_offsets_do_not_end_when_it_is_unknown_what_members_read() -> None:
    world = World()
    group = world.stable(1)
    world.commit(AT_FIVE, member_id=group.leader, generation=1)
    world.now_ms += 8 * DAY_MS
    expire(world)
    assert committed(world) == 5


def test_an_old_client_may_ask_for_another_retention() -> None:
    world = World()
    world.commit(AT_FIVE, retention_ms=1_000)
    world.restart()
    world.advance(999)
    expire(world)
    assert committed(world) == 5
    world.advance(1)
    expire(world)
    assert committed(world) is None


def test_an_offset_that_is_being_committed_does_not_end() -> None:
    world = World()
    world.commit(AT_FIVE)
    world.advance(8 * DAY_MS)
    world.holds_writes = True
    world.commit(OffsetToCommit("flights", 0, 6))
    expire(world)
    world.settle()
    assert committed(world) == 6
    world.restart()
    assert committed(world) == 6


def test_offsets_of_deleted_topics_go_but_not_those_of_their_successors() -> None:
    world = World()
    old, new = UUID(int=1), UUID(int=2)
    world.commit(OffsetToCommit("gone", 0, 1, topic_id=old))
    world.commit(OffsetToCommit("anew", 0, 2, topic_id=new))
    world.commit(OffsetToCommit("kept", 0, 3, topic_id=new))
    topics = {"gone": old, "anew": old}
    world.perform(world.coordinator.on_topics_deleted(topics, now_ms=world.now_ms))
    assert sorted(world.coordinator.committed(GROUP)) == [("anew", 0), ("kept", 0)]
    world.restart()
    assert sorted(world.coordinator.committed(GROUP)) == [("anew", 0), ("kept", 0)]


def test_an_offset_of_an_earlier_topic_of_the_name_is_told_apart() -> None:
    world = World()
    world.commit(OffsetToCommit("flights", 0, 1, topic_id=UUID(int=1)))
    found = world.coordinator.committed(GROUP)["flights", 0]
    assert found.belongs_to(UUID(int=1)) and found.belongs_to(UUID(int=0))
    assert not found.belongs_to(UUID(int=2))


def test_an_empty_group_is_deleted_with_its_offsets() -> None:
    world = World(holds_writes=True)
    world.commit(AT_FIVE)
    world.settle()
    in_flight = world.commit(OffsetToCommit("flights", 1, 7))
    token = world.delete()
    assert world.state == "none", "it is dead already"
    dead = world.commit(AT_FIVE)
    assert world.commit_errors(dead) == [Error.COORDINATOR_NOT_AVAILABLE]
    world.settle()
    assert world.deleted(token) == 0
    assert world.commit_errors(in_flight) == [0]
    assert world.coordinator.list_groups() == []
    world.restart()
    assert world.coordinator.committed(GROUP) == {}


def test_a_deletion_that_cannot_be_written_is_undone() -> None:
    world = World(holds_writes=True)
    world.commit(AT_FIVE)
    world.settle()
    token = world.delete()
    world.settle(Error.REQUEST_TIMED_OUT)
    assert world.deleted(token) == Error.COORDINATOR_NOT_AVAILABLE
    assert (world.state, committed(world)) == ("Empty", 5)


def test_groups_with_members_and_unknown_groups_are_not_deleted() -> None:
    world = World()
    assert world.deleted(world.delete()) == Error.GROUP_ID_NOT_FOUND
    world.stable(1)
    assert world.deleted(world.delete()) == Error.NON_EMPTY_GROUP


def test_groups_are_described_and_listed() -> None:
    world = World()
    group = world.stable(2)
    described = world.coordinator.describe(GROUP)
    assert described is not None
    assert (described.state, described.protocol_type, described.protocol) == (
        "Stable",
        "consumer",
        "range",
    )
    assert {member.member_id: member.assignment for member in described.members} == (
        group.assignments
    )
    assert {member.metadata for member in described.members} == {b"wants"}
    (listed,) = world.coordinator.list_groups()
    assert (listed.group, listed.state, listed.type) == (GROUP, "Stable", "classic")
    world.join(group.leader)
    described = world.coordinator.describe(GROUP)
    assert described is not None and described.protocol == ""
    assert {member.metadata for member in described.members} == {b""}
    assert {member.member_id: member.assignment for member in described.members} == (
        group.assignments
    )
    assert world.coordinator.describe("unknown") is None


def test_strange_records_in_the_log_are_passed_over() -> None:
    from strandline.coordinator.replay import OffsetsState

    state = OffsetsState()
    for key, value in (
        (None, b""),
        (b"", b""),
        (b"\0\3abc", b"x"),
        (b"\0\1\0", b""),
        (b"\0\2", None),
    ):
        state.replay(key, value)
    assert state.groups == {}
    assert state.unreadable_count == 4


def test_the_log_is_written_in_kafkas_schema() -> None:
    world = World()
    world.commit(AT_FIVE)
    key, value = world.log[0]
    assert key[:2] == b"\0\1" and value is not None and value[:2] == b"\0\4"
    assert decode_log_record(key, value) is not None


AT_NINE = OffsetToCommit("flights", 0, 9)
OVERTAKEN = Error.COORDINATOR_LOAD_IN_PROGRESS


def codes(world: World, offset: OffsetToCommit, member_id: str, connection: int) -> list[int]:
    """What a member of the first generation is told that commits over this connection."""
    token = world.commit(offset, member_id=member_id, generation=1, connection=connection)
    return world.commit_errors(token)


def test_a_commit_that_comes_again_over_an_older_connection_sets_nothing_back() -> None:
    """The client had given that connection up, and committed more since (chaos, seed 79)."""
    world = World()
    member = world.stable(1).leader
    assert codes(world, AT_FIVE, member, 1) == [0]
    assert codes(world, AT_FIVE, member, 2) == codes(world, AT_NINE, member, 2) == [0]
    assert codes(world, AT_FIVE, member, 1) == [OVERTAKEN]
    assert committed(world) == 9


def test_it_sets_nothing_back_while_the_later_one_is_still_written() -> None:
    world = World()
    member = world.stable(1).leader
    world.holds_writes = True
    later = world.commit(AT_NINE, member_id=member, generation=1, connection=2)
    assert codes(world, AT_FIVE, member, 1) == [OVERTAKEN]
    world.settle()
    assert world.commit_errors(later) == [0]
    assert committed(world) == 9


def test_who_seeks_back_may_commit_that() -> None:
    world = World()
    member = world.stable(1).leader
    assert codes(world, AT_NINE, member, 1) == codes(world, AT_FIVE, member, 1) == [0]
    assert codes(world, AT_NINE, member, 1) == codes(world, AT_FIVE, member, 2) == [0]
    assert committed(world) == 5


def test_commits_over_two_connections_by_turns_are_taken() -> None:
    world = World()
    member = world.stable(1).leader
    assert codes(world, AT_FIVE, member, 2) == codes(world, AT_NINE, member, 1) == [0]
    assert committed(world) == 9


def test_what_another_member_commits_over_an_older_connection_is_taken() -> None:
    world = World()
    group = world.stable(2)
    assert codes(world, AT_NINE, group.leader, 2) == [0]
    assert codes(world, AT_FIVE, group.followers[0], 1) == [0]
    assert committed(world) == 5


def test_a_new_generation_knows_its_members_commits_alone() -> None:
    """A commit from before is refused for its generation: it is not overtaken twice. Else a member
    that lives for long, and reads topics that come and go, is remembered with all of them."""
    world = World()
    member = world.stable(1).leader
    assert codes(world, AT_NINE, member, 2) == [0]
    world.join(member)
    world.finish_join()
    world.sync(member, 2, {member: b"work"})
    assert codes(world, AT_FIVE, member, 1) == [Error.ILLEGAL_GENERATION]
    token = world.commit(AT_FIVE, member_id=member, generation=2, connection=1)
    assert world.commit_errors(token) == [0]
    assert committed(world) == 5
