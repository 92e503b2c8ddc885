"""Members leave: they ask to, an operator removes them, or their session times out.

Source: Kafka's classic group protocol; KIP-345 (an operator removes static members in batches)."""

from strandline.coordinator.answers import LeaveAnswer, LeftMember
from strandline.coordinator.effects import Turn
from strandline.coordinator.group import Group, GroupState
from strandline.coordinator.rebalance import (
    complete_if_all_joined,
    rebalance_or_complete,
    remove_member,
)
from strandline.coordinator.requests import NO_MEMBER, LeaveGroup, LeavingMember
from strandline.protocol.errors import Error


def on_leave(group: Group, request: LeaveGroup, turn: Turn) -> None:
    """Remove members, each with its own answer, then rebalance among the others."""
    if group.state is GroupState.DEAD:
        answer = LeaveAnswer(error_code=Error.COORDINATOR_NOT_AVAILABLE)
        turn.reply(request.token, answer)
        return
    results = []
    has_changed = False
    for leaving in request.members:
        error = _leave(group, leaving, turn)
        has_changed = has_changed or error is Error.NONE
        results.append(LeftMember(leaving.member_id, leaving.instance_id, error))
    turn.reply(request.token, LeaveAnswer(members=tuple(results)))
    if has_changed:
        _after_removal(group, turn)


def _leave(group: Group, leaving: LeavingMember, turn: Turn) -> Error:
    member_id: str | None = leaving.member_id
    if leaving.member_id == NO_MEMBER:
        instance_id = leaving.instance_id
        member_id = None if instance_id is None else group.roster.static_member_id(instance_id)
        if member_id is None:
            return Error.UNKNOWN_MEMBER_ID
    elif leaving.member_id in group.roster.pending:
        group.roster.remove(leaving.member_id)
        group.end_session(turn, leaving.member_id)
        return Error.NONE
    else:
        error = group.check_member(leaving.member_id, leaving.instance_id)
        if error is not Error.NONE:
            return error
    member = group.roster.get(member_id or "")
    assert member is not None
    remove_member(group, turn, member)
    return Error.NONE


def on_session_timer(group: Group, member_id: str, turn: Turn) -> None:
    """A member has been silent for its session timeout, or a member id was never used."""
    if member_id in group.roster.pending:
        group.roster.pending.discard(member_id)
        complete_if_all_joined(group, turn)
        return
    member = group.roster.get(member_id)
    if member is not None and not member.is_excused:
        remove_member(group, turn, member)
        _after_removal(group, turn)


def _after_removal(group: Group, turn: Turn) -> None:
    if group.state in (GroupState.STABLE, GroupState.COMPLETING):
        rebalance_or_complete(group, turn)
    else:
        complete_if_all_joined(group, turn)
