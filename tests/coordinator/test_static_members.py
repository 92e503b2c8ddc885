"""Static members keep their place across restarts (KIP-345, KIP-814)."""

import pytest
from tests.coordinator.group_world import World

from strandline.coordinator.requests import LeavingMember, OffsetToCommit
from strandline.protocol.errors import Error


class StaticGroup:
    """Two static members, "one" leading, stable in generation 1."""

    def __init__(self, world: World, **options: bool) -> None:
        tokens = [world.join(instance_id=name, **options) for name in ("one", "two")]
        world.finish_join()
        self.one, self.two = (world.joined(token).member_id for token in tokens)
        world.sync(self.one, 1, {self.one: b"a", self.two: b"b"}, instance_id="one")
        world.sync(self.two, 1, instance_id="two")
        assert world.state == "Stable"


def test_a_static_member_needs_no_second_join() -> None:
    world = World()
    group = StaticGroup(world)
    assert group.one.startswith("one-")


def test_a_static_follower_that_restarts_disturbs_nobody() -> None:
    world = World()
    StaticGroup(world)
    answer = world.joined(world.join(instance_id="two"))
    assert (answer.error_code, answer.generation, answer.skip_assignment) == (0, 1, False)
    assert world.state == "Stable"
    token = world.sync(answer.member_id, 1, instance_id="two")
    assert world.synced(token).assignment == b"b"


def test_a_static_leader_that_restarts_need_not_assign() -> None:
    world = World()
    StaticGroup(world)
    answer = world.joined(world.join(instance_id="one"))
    assert (answer.leader, answer.skip_assignment) == (answer.member_id, True)
    assert len(answer.members) == 2
    assert world.state == "Stable"


def test_an_old_client_that_restarts_as_leader_is_not_told_that_it_leads() -> None:
    world = World()
    group = StaticGroup(world)
    answer = world.joined(world.join(instance_id="one", may_skip_assignment=False))
    assert (answer.leader, answer.skip_assignment, answer.members) == (group.one, False, ())


def test_the_new_id_is_in_force_once_it_is_committed() -> None:
    world = World()
    group = StaticGroup(world)
    world.holds_writes = True
    token = world.join(instance_id="two")
    assert world.answer_of(token) is None
    world.settle()
    new_id = world.joined(token).member_id
    world.restart()
    assert world.heartbeat(new_id, 1, "two") == 0
    assert world.heartbeat(group.two, 1, "two") == Error.FENCED_INSTANCE_ID


def test_a_takeover_that_cannot_be_written_is_undone() -> None:
    world = World()
    group = StaticGroup(world)
    world.holds_writes = True
    token = world.join(instance_id="one", protocols=(("range", b"other"),))
    world.settle(Error.REQUEST_TIMED_OUT)
    assert world.joined(token).error_code == Error.COORDINATOR_NOT_AVAILABLE
    assert world.heartbeat(group.one, 1, "one") == 0
    assert world.state == "Stable"


def test_a_takeover_that_changes_the_protocol_makes_everybody_join_again() -> None:
    world = World()
    both = (("range", b""), ("sticky", b""))
    tokens = [world.join(instance_id=name, protocols=both) for name in ("one", "two")]
    world.finish_join()
    one = world.joined(tokens[0]).member_id
    world.sync(one, 1, instance_id="one")
    assert world.state == "Stable"
    world.join(instance_id="two", protocols=(("sticky", b""),))
    assert world.state == "PreparingRebalance"


def test_the_old_process_of_an_instance_is_fenced() -> None:
    world = World()
    group = StaticGroup(world)
    world.joined(world.join(instance_id="two"))
    assert world.heartbeat(group.two, 1, "two") == Error.FENCED_INSTANCE_ID
    assert world.joined(world.join(group.two, instance_id="two")).error_code == (
        Error.FENCED_INSTANCE_ID
    )
    token = world.sync(group.two, 1, instance_id="two")
    assert world.synced(token).error_code == Error.FENCED_INSTANCE_ID
    offset = OffsetToCommit("flights", 0, 5)
    commit = world.commit(offset, member_id=group.two, generation=1, instance_id="two")
    assert world.commit_errors(commit) == [Error.FENCED_INSTANCE_ID]


def test_an_instance_that_joins_twice_at_once_is_fenced_once() -> None:
    world = World()
    first = world.join(instance_id="one")
    second = world.join(instance_id="one")
    assert world.joined(first).error_code == Error.FENCED_INSTANCE_ID
    world.finish_join()
    assert (world.joined(second).error_code, world.joined(second).generation) == (0, 1)


def test_a_takeover_while_assignments_are_made_begins_a_new_join_phase() -> None:
    world = World()
    tokens = [world.join(instance_id=name) for name in ("one", "two")]
    world.finish_join()
    one, two = (world.joined(token).member_id for token in tokens)
    waiting = world.sync(two, 1, instance_id="two")
    replaced = world.join(instance_id="two")
    assert world.synced(waiting).error_code == Error.FENCED_INSTANCE_ID
    assert world.state == "PreparingRebalance"
    world.join(one, instance_id="one")
    assert world.joined(replaced).generation == 2


def test_a_static_member_keeps_its_place_through_a_join_phase_it_misses() -> None:
    world = World()
    tokens = [
        world.join(instance_id=name, session_timeout_ms=600_000, rebalance_timeout_ms=20_000)
        for name in ("one", "two")
    ]
    world.finish_join()
    one, two = (world.joined(token).member_id for token in tokens)
    world.sync(one, 1, instance_id="one")
    world.sync(two, 1, instance_id="two")
    again = world.join(one, instance_id="one", session_timeout_ms=600_000)
    world.finish_join()
    answer = world.joined(again)
    assert answer.generation == 2
    assert {member.instance_id for member in answer.members} == {"one", "two"}


def test_a_member_that_has_joined_leads_where_the_leader_misses_the_join_phase() -> None:
    """Only a leader that gets an answer can assign partitions."""
    world = World()
    patience = {"session_timeout_ms": 600_000, "rebalance_timeout_ms": 20_000}
    tokens = [world.join(instance_id=name, **patience) for name in ("one", "two", "three")]
    world.finish_join()
    one, _, three = (world.joined(token).member_id for token in tokens)
    world.sync(one, 1, instance_id="one")
    assert world.joined(tokens[0]).leader == one
    world.join(instance_id="four", **patience)
    again = world.join(three, instance_id="three", **patience)
    world.finish_join()
    answer = world.joined(again)
    assert (answer.generation, answer.leader) == (2, three)
    assert len(answer.members) == 4, "static members keep their places"


def test_a_join_phase_that_nobody_attends_waits_until_the_sessions_end() -> None:
    world = World()
    group = StaticGroup(world)
    dynamic = world.new_id()
    world.join(dynamic, session_timeout_ms=10_000)
    world.leave(LeavingMember(dynamic))
    assert world.state == "PreparingRebalance"
    world.advance(200_000)
    assert world.state == "Empty"
    assert world.heartbeat(group.one, 1, "one") == Error.UNKNOWN_MEMBER_ID


def test_an_operator_removes_static_members_by_their_instance() -> None:
    world = World()
    group = StaticGroup(world)
    answer = world.leave(LeavingMember("", "two"), LeavingMember("wrong", "one"))
    assert [one.error_code for one in answer.members] == [0, Error.FENCED_INSTANCE_ID]
    assert world.state == "PreparingRebalance"
    assert world.heartbeat(group.two, 1, "two") == Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("instance_id", ["three"])
def test_an_unknown_instance_with_a_member_id_is_refused(instance_id: str) -> None:
    world = World()
    group = StaticGroup(world)
    assert world.heartbeat(group.one, 1, instance_id) == Error.UNKNOWN_MEMBER_ID
