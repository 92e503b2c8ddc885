"""One group as a state machine: which file handles which event.

Source: STYLE, rule 1 and "Types" (dict dispatch)."""

from collections.abc import Callable
from typing import Any

from strandline.coordinator.answers import (
    DeleteAnswer,
    DeleteOffsetsAnswer,
    HeartbeatAnswer,
    JoinAnswer,
    LeaveAnswer,
    SyncAnswer,
)
from strandline.coordinator.commits import answer_commit, on_commit, on_delete
from strandline.coordinator.effects import Effect, Turn
from strandline.coordinator.expiry import on_expire, on_topics_deleted
from strandline.coordinator.group import JOIN_TIMER, SESSION_TIMER, SYNC_TIMER, Group, GroupState
from strandline.coordinator.joining import on_join
from strandline.coordinator.leaving import on_leave, on_session_timer
from strandline.coordinator.log_records import GroupSnapshot
from strandline.coordinator.members import Member
from strandline.coordinator.offset_deletion import on_delete_offsets
from strandline.coordinator.rebalance import on_join_timer
from strandline.coordinator.replay import LoadedGroup
from strandline.coordinator.requests import (
    CommitOffsets,
    DeleteGroup,
    DeleteOffsets,
    Event,
    ExpireOffsets,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    Persisted,
    Request,
    SyncGroup,
    TimerFired,
    TopicsDeleted,
)
from strandline.coordinator.settings import GroupSettings
from strandline.coordinator.syncing import on_heartbeat, on_sync, on_sync_timer
from strandline.protocol.errors import Error


class GroupMachine:
    """See the module."""

    def __init__(self, group: Group) -> None:
        self.group = group

    def step(self, event: Event, *, now_ms: int, settings: GroupSettings) -> list[Effect]:
        """Handle one event; perform the effects in order. `now_ms` is wall clock time."""
        assert event.group == self.group.id
        turn = Turn(now_ms, settings)
        _HANDLERS[type(event)](self.group, event, turn)
        return turn.effects

    def load(self, loaded: LoadedGroup, *, now_ms: int, settings: GroupSettings) -> list[Effect]:
        """Take the state from the log; the sessions of its members begin anew."""
        turn = Turn(now_ms, settings)
        group = self.group
        group.offsets.update(loaded.offsets)
        if loaded.metadata is not None:
            _load_metadata(group, loaded.metadata)
        for member in group.roster:
            group.restart_session(turn, member)
        return turn.effects


def _load_metadata(group: Group, metadata: GroupSnapshot) -> None:
    group.protocol_type = metadata.protocol_type or None
    group.protocol_name = metadata.protocol
    group.generation = metadata.generation
    group.state_since_ms = metadata.state_since_ms
    for one in metadata.members:
        group.roster.add(
            Member(
                id=one.id,
                instance_id=one.instance_id,
                client_id=one.client_id,
                client_host=one.client_host,
                session_timeout_ms=one.session_timeout_ms,
                rebalance_timeout_ms=one.rebalance_timeout_ms,
                protocols={metadata.protocol or "": one.subscription},
                assignment=one.assignment,
            )
        )
    if metadata.members:
        group.state = GroupState.STABLE
        if metadata.leader in group.roster.members:
            group.roster.leader = metadata.leader


def _on_timer(group: Group, event: TimerFired, turn: Turn) -> None:
    if event.name == JOIN_TIMER:
        on_join_timer(group, turn)
    elif event.name == SYNC_TIMER:
        on_sync_timer(group, turn)
    else:
        on_session_timer(group, event.name.removeprefix(SESSION_TIMER), turn)


def _on_persisted(group: Group, event: Persisted, turn: Turn) -> None:
    group.on_persisted(event.ticket, event.error, turn)


def _on_expire(group: Group, event: ExpireOffsets, turn: Turn) -> None:
    on_expire(group, turn)


def _on_topics_deleted(group: Group, event: TopicsDeleted, turn: Turn) -> None:
    on_topics_deleted(group, event.topics, turn)


_HANDLERS: dict[type, Callable[[Group, Any, Turn], None]] = {
    JoinGroup: on_join,
    SyncGroup: on_sync,
    Heartbeat: on_heartbeat,
    LeaveGroup: on_leave,
    CommitOffsets: on_commit,
    DeleteGroup: on_delete,
    DeleteOffsets: on_delete_offsets,
    TimerFired: _on_timer,
    Persisted: _on_persisted,
    ExpireOffsets: _on_expire,
    TopicsDeleted: _on_topics_deleted,
}


def refuse(request: Request, error: Error, turn: Turn) -> None:
    """Answer a request with an error, in the form of its kind."""
    match request:
        case JoinGroup():
            turn.reply(request.token, JoinAnswer(error_code=error, member_id=request.member_id))
        case SyncGroup():
            turn.reply(request.token, SyncAnswer(error_code=error))
        case Heartbeat():
            turn.reply(request.token, HeartbeatAnswer(error))
        case LeaveGroup():
            turn.reply(request.token, LeaveAnswer(error_code=error))
        case CommitOffsets():
            answer_commit(turn, request, dict.fromkeys(range(len(request.offsets)), error))
        case DeleteGroup():
            turn.reply(request.token, DeleteAnswer(error))
        case DeleteOffsets():
            turn.reply(request.token, DeleteOffsetsAnswer(error))
