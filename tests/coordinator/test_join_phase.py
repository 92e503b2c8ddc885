"""Joining: member ids first, an initial delay, one generation for everybody (KIP-62, 134, 394)."""

from dataclasses import replace

import pytest
from tests.coordinator.group_world import GROUP, RANGE, World

from strandline.protocol.errors import Error


def test_a_new_member_is_told_its_id_and_joins_with_it() -> None:
    world = World()
    member_id = world.new_id()
    assert member_id.startswith("client-")
    token = world.join(member_id)
    assert world.answer_of(token) is None
    world.advance(3_000)
    world.advance(3_000)
    answer = world.joined(token)
    assert (answer.error_code, answer.generation, answer.leader) == (0, 1, member_id)
    assert [member.member_id for member in answer.members] == [member_id]
    assert answer.members[0].metadata == b"wants"
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")


def test_an_old_client_joins_at_once() -> None:
    world = World()
    token = world.join(knows_member_ids=False)
    world.finish_join()
    assert world.joined(token).error_code == 0


def test_the_first_join_phase_waits_for_a_fleet_that_starts_together() -> None:
    world = World()
    first = world.join(knows_member_ids=False)
    world.advance(2_000)
    second = world.join(knows_member_ids=False)
    world.advance(2_000)
    assert world.answer_of(first) is None, "the second member has begun the delay anew"
    world.advance(2_000)
    assert {world.joined(first).generation, world.joined(second).generation} == {1}


def test_the_first_join_phase_ends_after_the_rebalance_timeout_however_many_come() -> None:
    world = World()
    first = world.join(knows_member_ids=False, rebalance_timeout_ms=10_000)
    for _ in range(5):
        world.advance(2_000)
        world.join(knows_member_ids=False, rebalance_timeout_ms=10_000)
    world.advance(2_000)
    assert world.joined(first).generation == 1


def test_only_the_leader_sees_the_others() -> None:
    world = World()
    ids = [world.new_id() for _ in range(3)]
    tokens = [world.join(member_id) for member_id in ids]
    world.finish_join()
    answers = [world.joined(token) for token in tokens]
    assert {answer.leader for answer in answers} == {ids[0]}
    assert [len(answer.members) for answer in answers] == [3, 0, 0]
    assert {member.member_id for member in answers[0].members} == set(ids)


def test_a_member_id_that_is_never_used_is_forgotten_with_its_group() -> None:
    world = World()
    world.new_id()
    assert world.state == "Empty"
    world.advance(10_000)
    assert world.state == "none"


def test_the_join_phase_waits_for_ids_that_were_given_out() -> None:
    world = World()
    group = world.stable(1)
    late = world.new_id()
    again = world.join(group.leader)
    assert world.answer_of(again) is None
    token = world.join(late)
    assert world.joined(again).generation == world.joined(token).generation == 2


def test_a_joining_member_makes_the_others_join_again() -> None:
    world = World()
    group = world.stable(2)
    token = world.join(world.new_id())
    assert world.state == "PreparingRebalance"
    codes = [world.heartbeat(member_id, group.generation) for member_id in group.ids]
    assert codes == [Error.REBALANCE_IN_PROGRESS] * 2
    tokens = [world.join(member_id) for member_id in group.ids]
    answers = [world.joined(one) for one in (*tokens, token)]
    assert {answer.generation for answer in answers} == {2}
    assert world.state == "CompletingRebalance"


def test_who_does_not_join_again_in_time_is_out() -> None:
    world = World()
    group = world.stable(2)
    token = world.join(world.new_id(), session_timeout_ms=300_000)
    stays = world.join(group.leader)
    for _ in range(12):
        world.heartbeat(group.followers[0], group.generation)
        world.advance(5_000)
    assert world.joined(token).generation == world.joined(stays).generation == 2
    assert world.heartbeat(group.followers[0], 2) == Error.UNKNOWN_MEMBER_ID


def test_a_leader_that_does_not_join_again_is_followed_by_one_that_did() -> None:
    world = World()
    group = world.stable(2)
    token = world.join(group.followers[0], protocols=(("range", b"other"),))
    world.finish_join()
    answer = world.joined(token)
    assert answer.leader == group.followers[0]
    assert [member.member_id for member in answer.members] == group.followers


def test_the_leader_may_join_again_to_assign_again() -> None:
    world = World()
    group = world.stable(2)
    token = world.join(group.leader)
    assert world.state == "PreparingRebalance"
    world.join(group.followers[0])
    assert world.joined(token).generation == 2


def test_a_follower_without_a_change_is_told_what_it_missed() -> None:
    world = World()
    group = world.stable(2)
    answer = world.joined(world.join(group.followers[0]))
    assert (answer.error_code, answer.generation, answer.members) == (0, 1, ())
    assert world.state == "Stable"


def test_a_member_that_missed_its_answer_gets_it_again_while_assignments_are_made() -> None:
    world = World()
    ids = [world.new_id() for _ in range(2)]
    for member_id in ids:
        world.join(member_id)
    world.finish_join()
    assert world.state == "CompletingRebalance"
    answer = world.joined(world.join(ids[0]))
    assert (answer.generation, len(answer.members)) == (1, 2)
    assert world.state == "CompletingRebalance"


def test_changed_metadata_while_assignments_are_made_begins_a_new_join_phase() -> None:
    world = World()
    ids = [world.new_id() for _ in range(2)]
    for member_id in ids:
        world.join(member_id)
    world.finish_join()
    waiting = world.sync(ids[1], 1)
    world.join(ids[0], protocols=(("range", b"other"),))
    assert world.state == "PreparingRebalance"
    assert world.synced(waiting).error_code == Error.REBALANCE_IN_PROGRESS


def test_a_request_that_is_asked_anew_gets_its_answer_too() -> None:
    world = World()
    member_id = world.new_id()
    first = world.join(member_id)
    second = world.join(member_id)
    assert world.joined(first).error_code == Error.REBALANCE_IN_PROGRESS
    world.finish_join()
    assert world.joined(second).generation == 1


@pytest.mark.parametrize("timeout_ms", [0, -1, 5_999, 1_800_001, 2**31 - 1])
def test_session_timeouts_have_bounds(timeout_ms: int) -> None:
    world = World()
    token = world.join(session_timeout_ms=timeout_ms)
    assert world.joined(token).error_code == Error.INVALID_SESSION_TIMEOUT
    assert world.state == "none"


def test_a_group_needs_a_name() -> None:
    world = World()
    assert world.joined(world.join(group="")).error_code == Error.INVALID_GROUP_ID


def test_an_unknown_member_id_is_refused() -> None:
    world = World()
    assert world.joined(world.join("nobody")).error_code == Error.UNKNOWN_MEMBER_ID
    world.stable(1)
    assert world.joined(world.join("nobody")).error_code == Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("protocol_type", "protocols"),
    [("connect", RANGE), ("consumer", (("sticky", b""),)), ("consumer", ()), ("", RANGE)],
)
def test_members_that_share_no_protocol_are_refused(
    protocol_type: str, protocols: tuple[tuple[str, bytes], ...]
) -> None:
    world = World()
    world.stable(1)
    token = world.join(protocol_type=protocol_type, protocols=protocols)
    assert world.joined(token).error_code == Error.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(("protocol_type", "protocols"), [("", RANGE), ("consumer", ())])
def test_a_first_member_must_name_a_protocol(
    protocol_type: str, protocols: tuple[tuple[str, bytes], ...]
) -> None:
    world = World()
    token = world.join(protocol_type=protocol_type, protocols=protocols)
    assert world.joined(token).error_code == Error.INCONSISTENT_GROUP_PROTOCOL


def test_the_protocol_that_most_members_prefer_among_the_shared_ones_is_chosen() -> None:
    world = World()
    preferences = (
        (("sticky", b"1"), ("range", b"2"), ("own", b"3")),
        (("range", b"4"), ("sticky", b"5")),
        (("range", b"6"), ("sticky", b"7")),
    )
    tokens = [world.join(protocols=one, knows_member_ids=False) for one in preferences]
    world.finish_join()
    answers = [world.joined(token) for token in tokens]
    assert {answer.protocol_name for answer in answers} == {"range"}
    assert [member.metadata for member in answers[0].members] == [b"2", b"4", b"6"]


def test_a_group_has_a_greatest_size() -> None:
    world = World()
    world.coordinator.settings = replace(world.settings, members_max=2)
    world.settings = world.coordinator.settings
    world.stable(2)
    answer = world.joined(world.join())
    assert (answer.error_code, answer.member_id) == (Error.GROUP_MAX_SIZE_REACHED, "")


def test_a_new_member_that_waits_too_long_for_its_first_generation_is_out() -> None:
    world = World()
    group = world.stable(1)
    token = world.join(world.new_id(), rebalance_timeout_ms=900_000)
    for _ in range(61):
        world.heartbeat(group.leader, group.generation)
        world.advance(5_000)
    answer = world.joined(token)
    assert answer.error_code == Error.UNKNOWN_MEMBER_ID


def test_the_rebalance_timeout_of_the_oldest_clients_is_their_session_timeout() -> None:
    world = World()
    world.join(knows_member_ids=False, rebalance_timeout_ms=-1)
    world.advance(3_000)
    world.advance(3_000)
    described = world.coordinator.describe(GROUP)
    assert described is not None and described.state == "CompletingRebalance"
