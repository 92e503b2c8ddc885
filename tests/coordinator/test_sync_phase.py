"""Syncing: the leader's assignment reaches everybody once it is committed."""

import pytest
from tests.coordinator.group_world import GROUP, World

from strandline.coordinator.requests import LeavingMember, OffsetToCommit
from strandline.protocol.errors import Error


def completing(world: World, count: int = 2) -> list[str]:
    """A group that waits for its leader's assignment, the leader first."""
    ids = [world.new_id() for _ in range(count)]
    for member_id in ids:
        world.join(member_id)
    world.finish_join()
    assert world.state == "CompletingRebalance"
    return ids


def test_everybody_gets_the_leaders_assignment_once_it_is_committed() -> None:
    world = World(holds_writes=True)
    leader, follower = completing(world)
    waiting = world.sync(follower, 1)
    own = world.sync(leader, 1, {leader: b"a", follower: b"b"})
    assert world.answer_of(own) is None and world.answer_of(waiting) is None
    world.settle()
    assert (world.synced(own).assignment, world.synced(waiting).assignment) == (b"a", b"b")
    assert world.synced(own).protocol_name == "range"
    assert world.state == "Stable"


def test_who_syncs_late_gets_its_assignment_at_once() -> None:
    world = World()
    leader, follower = completing(world)
    world.sync(leader, 1, {leader: b"a", follower: b"b"})
    assert world.synced(world.sync(follower, 1)).assignment == b"b"


def test_a_member_the_leader_forgot_gets_an_empty_assignment() -> None:
    world = World()
    leader, follower = completing(world)
    world.sync(leader, 1, {leader: b"a", "stranger": b"x"})
    assert world.synced(world.sync(follower, 1)).assignment == b""


def test_an_assignment_that_cannot_be_written_makes_everybody_join_again() -> None:
    world = World(holds_writes=True)
    leader, follower = completing(world)
    waiting = world.sync(follower, 1)
    own = world.sync(leader, 1, {leader: b"a"})
    world.settle(Error.NOT_ENOUGH_REPLICAS)
    codes = {world.synced(own).error_code, world.synced(waiting).error_code}
    assert codes == {Error.COORDINATOR_NOT_AVAILABLE}
    assert world.state == "PreparingRebalance"


def test_an_assignment_of_a_generation_that_is_over_changes_nothing() -> None:
    world = World(holds_writes=True)
    leader, follower = completing(world)
    own = world.sync(leader, 1, {leader: b"old", follower: b"old"})
    world.join(follower, protocols=(("range", b"other"),))
    assert world.synced(own).error_code == Error.REBALANCE_IN_PROGRESS
    world.join(leader)
    assert world.state == "CompletingRebalance"
    world.settle()
    assert world.state == "CompletingRebalance"
    described = world.coordinator.describe(GROUP)
    assert described is not None


def test_a_sync_of_another_generation_is_refused() -> None:
    world = World()
    leader, _ = completing(world)
    for generation in (0, 2, -1):
        assert world.synced(world.sync(leader, generation)).error_code == Error.ILLEGAL_GENERATION


def test_a_sync_of_a_stranger_is_refused() -> None:
    world = World()
    assert world.synced(world.sync("x", 1)).error_code == Error.UNKNOWN_MEMBER_ID
    completing(world)
    assert world.synced(world.sync("x", 1)).error_code == Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(("type_", "name"), [("connect", None), (None, "sticky"), ("x", "range")])
def test_a_sync_with_another_protocol_is_refused(type_: str | None, name: str | None) -> None:
    world = World()
    leader, _ = completing(world)
    token = world.sync(leader, 1, protocol_type=type_, protocol_name=name)
    assert world.synced(token).error_code == Error.INCONSISTENT_GROUP_PROTOCOL


def test_a_sync_during_a_join_phase_is_told_to_join() -> None:
    world = World()
    group = world.stable(2)
    world.join(group.leader)
    token = world.sync(group.followers[0], group.generation)
    assert world.synced(token).error_code == Error.REBALANCE_IN_PROGRESS


def test_a_sync_that_is_asked_anew_gets_its_answer_too() -> None:
    world = World()
    leader, follower = completing(world)
    first, second = world.sync(follower, 1), world.sync(follower, 1)
    assert world.synced(first).error_code == Error.REBALANCE_IN_PROGRESS
    world.sync(leader, 1, {follower: b"b"})
    assert world.synced(second).assignment == b"b"


def test_a_leader_that_assigns_twice_is_heard_once() -> None:
    world = World(holds_writes=True)
    leader, follower = completing(world)
    first = world.sync(leader, 1, {leader: b"a", follower: b"b"})
    second = world.sync(leader, 1, {leader: b"x", follower: b"y"})
    world.settle()
    assert world.synced(first).error_code == Error.REBALANCE_IN_PROGRESS
    assert world.synced(second).assignment == b"a"
    world.restart()
    assert world.synced(world.sync(follower, 1)).assignment == b"b"


def test_members_that_never_sync_are_put_out_and_the_others_join_again() -> None:
    world = World()
    leader, follower = completing(world)
    waiting = world.sync(follower, 1)
    for _ in range(13):
        world.heartbeat(leader, 1)
        world.advance(5_000)
    assert world.synced(waiting).error_code == Error.REBALANCE_IN_PROGRESS
    assert world.heartbeat(leader, 1) == Error.UNKNOWN_MEMBER_ID
    assert world.joined(world.join(follower)).leader == follower


def test_heartbeats_are_checked_and_keep_a_member_alive() -> None:
    world = World()
    group = world.stable(1)
    for _ in range(5):
        world.advance(9_000)
        assert world.heartbeat(group.leader, group.generation) == 0
    assert world.heartbeat(group.leader, group.generation + 1) == Error.ILLEGAL_GENERATION
    assert world.heartbeat("stranger", group.generation) == Error.UNKNOWN_MEMBER_ID
    world.advance(10_000)
    assert world.heartbeat(group.leader, group.generation) == Error.UNKNOWN_MEMBER_ID
    assert world.state == "Empty"


def test_a_silent_member_makes_the_others_join_again() -> None:
    world = World()
    group = world.stable(2)
    world.advance(9_000)
    world.heartbeat(group.leader, group.generation)
    world.advance(1_000)
    assert world.state == "PreparingRebalance"
    answer = world.joined(world.join(group.leader))
    assert (answer.generation, len(answer.members)) == (2, 1)


def test_members_that_wait_for_an_answer_are_not_silent() -> None:
    world = World()
    leader, follower = completing(world)
    token = world.sync(follower, 1)
    for _ in range(5):
        world.advance(9_000)
        world.heartbeat(leader, 1)
    assert world.answer_of(token) is None
    world.sync(leader, 1, {follower: b"b"})
    assert world.synced(token).assignment == b"b"
    world.advance(10_000)
    assert world.heartbeat(follower, 1) == Error.UNKNOWN_MEMBER_ID, "its session began anew"


def test_who_leaves_is_gone_at_once_and_the_others_join_again() -> None:
    world = World()
    group = world.stable(2)
    answer = world.leave(LeavingMember(group.followers[0]))
    assert [member.error_code for member in answer.members] == [0]
    assert world.state == "PreparingRebalance"
    assert world.joined(world.join(group.leader)).generation == 2


def test_who_leaves_while_it_waits_is_answered() -> None:
    world = World()
    leader, follower = completing(world)
    syncing = world.sync(follower, 1)
    world.leave(LeavingMember(follower))
    assert world.synced(syncing).error_code == Error.UNKNOWN_MEMBER_ID
    joining = world.join(leader, protocols=(("range", b"other"),))
    world.join(world.new_id())
    world.leave(LeavingMember(leader))
    assert world.joined(joining).generation == 2, "it had joined alone before it left"


def test_a_group_that_all_have_left_is_empty_and_says_so_in_the_log() -> None:
    world = World()
    group = world.stable(1)
    written = len(world.log)
    world.leave(LeavingMember(group.leader))
    assert world.state == "Empty"
    assert len(world.log) == written + 1
    world.restart()
    assert world.state == "Empty"


def test_strangers_cannot_leave() -> None:
    world = World()
    assert world.leave(LeavingMember("x")).members[0].error_code == Error.UNKNOWN_MEMBER_ID
    world.stable(1)
    answer = world.leave(LeavingMember("x"), LeavingMember("", "no instance"))
    assert [one.error_code for one in answer.members] == [Error.UNKNOWN_MEMBER_ID] * 2
    assert world.state == "Stable"
    assert world.leave(LeavingMember("x"), group="").error_code == Error.INVALID_GROUP_ID


def test_an_id_that_was_given_out_can_be_given_back() -> None:
    world = World()
    group = world.stable(1)
    pending = world.new_id()
    assert world.leave(LeavingMember(pending)).members[0].error_code == 0
    assert world.joined(world.join(pending)).error_code == Error.UNKNOWN_MEMBER_ID
    token = world.join(group.leader)
    assert world.joined(token).generation == 2, "nobody is waited for"


def test_an_assignment_survives_the_coordinator() -> None:
    world = World()
    group = world.stable(2)
    world.restart()
    assert world.state == "Stable"
    for member_id in group.ids:
        assert world.heartbeat(member_id, group.generation) == 0
        token = world.sync(member_id, group.generation)
        assert world.synced(token).assignment == group.assignments[member_id]


def test_requests_that_wait_are_answered_when_the_coordinator_moves() -> None:
    world = World(holds_writes=True)
    joining = world.join(world.new_id())
    commit = world.commit(OffsetToCommit("flights", 0, 5), group="another")
    world.restart()
    assert world.joined(joining).error_code == Error.NOT_COORDINATOR
    assert world.commit_errors(commit) == [Error.NOT_COORDINATOR]
