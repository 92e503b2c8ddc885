"""Committed offsets that an operator deletes (KIP-496)."""

import pytest
from tests.coordinator.group_world import GROUP, World

from strandline.coordinator.answers import DeletedOffset, DeleteOffsetsAnswer
from strandline.coordinator.requests import DeleteOffsets, LeavingMember, OffsetToCommit
from strandline.protocol.consumer import ConsumerProtocolSubscription, encode_subscription
from strandline.protocol.errors import Error

FLIGHTS = ("flights", 0)
OTHER = ("other", 0)


def delete(world: World, *partitions: tuple[str, int], group: str = GROUP) -> int:
    token = world.next_token()
    world.feed(DeleteOffsets(token=token, group=group, partitions=partitions))
    return token


def result(world: World, token: int) -> int | list[int]:
    """The error of the request, or those of its partitions."""
    answer = world.answers[token]
    assert isinstance(answer, DeleteOffsetsAnswer)
    return answer.error_code or [one.error_code for one in answer.partitions]


def commit_both(world: World, *, member_id: str = "", generation: int = -1) -> None:
    world.commit(
        OffsetToCommit(*FLIGHTS, 5),
        OffsetToCommit(*OTHER, 8),
        member_id=member_id,
        generation=generation,
    )


def committed(world: World) -> set[tuple[str, int]]:
    return set(world.coordinator.committed(GROUP))


def member_that_reads(world: World, topic: str, *, protocol_type: str = "consumer") -> str:
    wants = encode_subscription(ConsumerProtocolSubscription(topics=[topic]))
    token = world.join(
        knows_member_ids=False, protocols=(("range", wants),), protocol_type=protocol_type
    )
    world.finish_join()
    member_id = world.joined(token).member_id
    world.sync(member_id, 1)
    return member_id


def test_offsets_of_a_group_without_members_are_gone_for_the_next_coordinator_too() -> None:
    world = World()
    commit_both(world)
    token = delete(world, FLIGHTS, ("flights", 7))
    assert world.answers[token] == DeleteOffsetsAnswer(
        partitions=(DeletedOffset("flights", 0), DeletedOffset("flights", 7))
    )
    assert committed(world) == {OTHER}
    world.restart()
    assert committed(world) == {OTHER}


def test_an_offset_is_in_force_until_its_removal_is_committed() -> None:
    world = World(holds_writes=True)
    commit_both(world)
    world.settle()
    token = delete(world, FLIGHTS)
    assert committed(world) == {FLIGHTS, OTHER} and world.answer_of(token) is None
    world.settle(Error.NOT_LEADER_OR_FOLLOWER)
    assert result(world, token) == Error.NOT_COORDINATOR
    assert committed(world) == {FLIGHTS, OTHER}


def test_a_commit_that_is_being_written_is_removed_too_and_a_later_one_stays() -> None:
    world = World(holds_writes=True)
    commit_both(world)
    token = delete(world, FLIGHTS, OTHER)
    world.commit(OffsetToCommit(*OTHER, 9))
    world.settle()
    assert result(world, token) == [0, 0]
    assert committed(world) == {OTHER}
    world.restart()
    assert committed(world) == {OTHER}


def test_what_members_read_stays_and_what_they_do_not_read_goes() -> None:
    world = World()
    member_id = member_that_reads(world, "flights")
    commit_both(world, member_id=member_id, generation=1)
    token = delete(world, FLIGHTS, OTHER)
    assert result(world, token) == [Error.GROUP_SUBSCRIBED_TO_TOPIC, 0]
    assert committed(world) == {FLIGHTS}
    world.leave(LeavingMember(member_id))
    assert result(world, delete(world, FLIGHTS)) == [0]
    assert committed(world) == set()


def test_consumers_whose_topics_are_unknown_may_read_any() -> None:
    world = World()
    group = world.stable(1)
    commit_both(world, member_id=group.leader, generation=group.generation)
    token = delete(world, FLIGHTS)
    assert result(world, token) == [Error.GROUP_SUBSCRIBED_TO_TOPIC]
    assert committed(world) == {FLIGHTS, OTHER}


def test_members_that_are_no_consumers_have_to_leave_first() -> None:
    world = World()
    member_that_reads(world, "flights", protocol_type="connect")
    assert result(world, delete(world, OTHER)) == Error.NON_EMPTY_GROUP


@pytest.mark.parametrize("has_been_deleted", [False, True])
def test_a_group_that_is_not_there_is_not_found(has_been_deleted: bool) -> None:
    world = World(holds_writes=True)
    if has_been_deleted:
        commit_both(world)
        world.settle()
        world.delete()
    assert result(world, delete(world, FLIGHTS)) == Error.GROUP_ID_NOT_FOUND


def test_a_coordinator_that_loses_its_lead_answers() -> None:
    world = World(holds_writes=True)
    commit_both(world)
    token = delete(world, FLIGHTS)
    world.restart()
    assert result(world, token) == Error.NOT_COORDINATOR
