"""SyncGroup and Heartbeat: the leader's assignment reaches all members, once the log has it.

How:    CompletingRebalance --the leader syncs--> its assignment is written --committed--> Stable,
        and waiting members get their answer. Members that never ask for their assignment are
        removed.
Source: Kafka's classic group protocol; KIP-559 (protocol type and name are checked)."""

from dataclasses import dataclass

from strandline.coordinator.answers import HeartbeatAnswer, SyncAnswer
from strandline.coordinator.effects import Turn
from strandline.coordinator.group import SYNC_TIMER, Group, GroupState
from strandline.coordinator.log_records import encode_group
from strandline.coordinator.rebalance import (
    answer_sync,
    assignment_answer,
    prepare_rebalance,
    remove_member,
    reset_assignments,
    snapshot,
)
from strandline.coordinator.requests import Heartbeat, SyncGroup
from strandline.coordinator.write_errors import metadata_error
from strandline.protocol.errors import Error


def on_sync(group: Group, request: SyncGroup, turn: Turn) -> None:
    """Give a member its assignment, now or once the leader has sent it."""
    error = _refusal(group, request)
    member = group.roster.get(request.member_id)
    if error is not Error.NONE or member is None:
        turn.reply(request.token, SyncAnswer(error_code=error or Error.UNKNOWN_MEMBER_ID))
        return
    _mark_synced(group, member.id, turn)
    if group.state is GroupState.STABLE:
        group.restart_session(turn, member)
        turn.reply(request.token, assignment_answer(group, member))
        return
    if member.sync_token is not None:
        # The client has given up its earlier request, which gets an answer all the same.
        turn.reply(member.sync_token, SyncAnswer(error_code=Error.REBALANCE_IN_PROGRESS))
    member.sync_token = request.token
    if group.roster.leader == member.id and not _is_assigning(group):
        given = dict(request.assignments)
        assignments = {one.id: given.get(one.id, b"") for one in group.roster}
        group.persist(
            turn,
            (encode_group(group.id, value=snapshot(group, assignments)),),
            _Assignment(group.generation, assignments),
        )


def _is_assigning(group: Group) -> bool:
    """Whether this generation's assignment is being written: there is only one, its first."""
    return any(
        isinstance(write, _Assignment) and write.generation == group.generation
        for write in group.waiting_writes
    )


def _refusal(group: Group, request: SyncGroup) -> Error:
    if group.state is GroupState.DEAD:
        return Error.COORDINATOR_NOT_AVAILABLE
    error = group.check_member(request.member_id, request.instance_id)
    if error is not Error.NONE:
        return error
    if request.generation != group.generation:
        return Error.ILLEGAL_GENERATION
    if request.protocol_type not in (None, group.protocol_type) or (
        request.protocol_name not in (None, group.protocol_name)
    ):
        return Error.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupState.PREPARING:
        return Error.REBALANCE_IN_PROGRESS
    return Error.NONE


@dataclass(frozen=True, slots=True)
class _Assignment:
    """The leader's assignment of one generation waits for the log."""

    generation: int
    assignments: dict[str, bytes]

    def on_persisted(self, group: Group, error: Error, turn: Turn) -> None:
        """Hand it out, unless the group has moved on meanwhile."""
        if group.state is not GroupState.COMPLETING or group.generation != self.generation:
            return
        if error is not Error.NONE:
            reset_assignments(group, turn, metadata_error(error))
            prepare_rebalance(group, turn)
            return
        group.move(GroupState.STABLE, turn)
        for member in group.roster:
            member.assignment = self.assignments.get(member.id, b"")
            answer_sync(group, turn, member)


def on_heartbeat(group: Group, request: Heartbeat, turn: Turn) -> None:
    """Keep a member's session alive, and tell it when it must join again."""
    error = Error.NONE
    if group.state is GroupState.DEAD:
        error = Error.COORDINATOR_NOT_AVAILABLE
    else:
        error = group.check_member(request.member_id, request.instance_id)
    if error is Error.NONE and request.generation != group.generation:
        error = Error.ILLEGAL_GENERATION
    if error is Error.NONE:
        member = group.roster.get(request.member_id)
        assert member is not None
        group.restart_session(turn, member)
        if group.state is GroupState.PREPARING:
            error = Error.REBALANCE_IN_PROGRESS
    turn.reply(request.token, HeartbeatAnswer(error))


def on_sync_timer(group: Group, turn: Turn) -> None:
    """Remove the members that have not asked for their assignment; the others join again."""
    if group.state not in (GroupState.COMPLETING, GroupState.STABLE) or not group.pending_sync:
        return
    for member in group.roster:
        if member.id in group.pending_sync:
            remove_member(group, turn, member)
    prepare_rebalance(group, turn)


def _mark_synced(group: Group, member_id: str, turn: Turn) -> None:
    group.pending_sync.discard(member_id)
    if not group.pending_sync:
        group.cancel_timer(turn, SYNC_TIMER)
