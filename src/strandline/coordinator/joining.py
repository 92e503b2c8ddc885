"""JoinGroup: which members may join, and what a join means in each state.

How:    A new dynamic member gets its id and joins again with it. A static member takes the place it
        had. A member that joins again without a change, while no rebalance runs, gets the answer
        that it missed. Every other join begins a join phase or adds to it.
Source: Kafka's classic group protocol; KIP-345 (static members), KIP-394 (member ids first),
        KIP-814 (a returning static leader need not assign)."""

from dataclasses import dataclass

from strandline.coordinator.answers import JoinAnswer, SyncAnswer
from strandline.coordinator.effects import Turn
from strandline.coordinator.group import SESSION_TIMER, Group, GroupState
from strandline.coordinator.log_records import encode_group
from strandline.coordinator.members import Member
from strandline.coordinator.rebalance import (
    complete_if_all_joined,
    generation_answer,
    joined_members,
    prepare_rebalance,
    rebalance_or_complete,
    snapshot,
)
from strandline.coordinator.requests import NO_MEMBER, JoinGroup
from strandline.coordinator.settings import NEW_MEMBER_JOIN_TIMEOUT_MS, PENDING_MEMBERS_MAX
from strandline.coordinator.write_errors import metadata_error
from strandline.protocol.errors import Error


def on_join(group: Group, request: JoinGroup, turn: Turn) -> None:
    """Accept a member, again or for the first time; the answer may wait for the others."""
    error = _refusal(group, request, turn)
    if error is not Error.NONE:
        member_id = "" if error is Error.GROUP_MAX_SIZE_REACHED else request.member_id
        turn.reply(request.token, JoinAnswer(error_code=error, member_id=member_id))
    elif request.member_id == NO_MEMBER:
        _join_new(group, request, turn)
    elif request.member_id in group.roster.pending:
        _add(group, request, request.member_id, turn)
    else:
        _join_again(group, request, turn)


def _refusal(group: Group, request: JoinGroup, turn: Turn) -> Error:
    low, high = turn.settings.session_timeout_min_ms, turn.settings.session_timeout_max_ms
    if not low <= request.session_timeout_ms <= high:
        return Error.INVALID_SESSION_TIMEOUT
    if group.state is GroupState.DEAD:
        return Error.COORDINATOR_NOT_AVAILABLE
    if not _has_room(group, request, turn):
        group.roster.pending.discard(request.member_id)
        return Error.GROUP_MAX_SIZE_REACHED
    if not group.supports(request.protocol_type, tuple(name for name, _ in request.protocols)):
        return Error.INCONSISTENT_GROUP_PROTOCOL
    if request.member_id == NO_MEMBER:
        return Error.NONE
    if request.member_id in group.roster.pending and request.instance_id is None:
        return Error.NONE
    return group.check_member(request.member_id, request.instance_id)


def _has_room(group: Group, request: JoinGroup, turn: Turn) -> bool:
    if len(group.roster.pending) >= PENDING_MEMBERS_MAX and request.member_id == NO_MEMBER:
        return False
    member = group.roster.get(request.member_id)
    if group.state is GroupState.EMPTY:
        return True
    if group.state is GroupState.PREPARING:
        # Members that do not come back make room at the end of the phase.
        is_counted = member is not None and member.join_token is not None
        return is_counted or group.roster.joined_count < turn.settings.members_max
    return member is not None or len(group.roster) < turn.settings.members_max


def _join_new(group: Group, request: JoinGroup, turn: Turn) -> None:
    prefix = request.client_id if request.instance_id is None else request.instance_id
    member_id = f"{prefix}-{group.new_member_suffix()}"
    if request.instance_id is not None:
        old_id = group.roster.static_member_id(request.instance_id)
        if old_id is None:
            _add(group, request, member_id, turn)
        else:
            _replace_static(group, request, turn, old_id=old_id, new_id=member_id)
    elif request.knows_member_ids:
        group.roster.pending.add(member_id)
        group.set_timer(turn, SESSION_TIMER + member_id, request.session_timeout_ms)
        answer = JoinAnswer(error_code=Error.MEMBER_ID_REQUIRED, member_id=member_id)
        turn.reply(request.token, answer)
    else:
        _add(group, request, member_id, turn)


def _join_again(group: Group, request: JoinGroup, turn: Turn) -> None:
    member = group.roster.get(request.member_id)
    assert member is not None
    is_unchanged = list(member.protocols.items()) == list(dict(request.protocols).items())
    match group.state:
        case GroupState.PREPARING:
            is_told = False
        case GroupState.COMPLETING:
            is_told = is_unchanged
        case GroupState.STABLE:
            # A leader joins again to assign again: its reasons need not be in its metadata.
            is_told = is_unchanged and group.roster.leader != member.id
        case _:
            turn.reply(
                request.token,
                JoinAnswer(error_code=Error.UNKNOWN_MEMBER_ID, member_id=request.member_id),
            )
            return
    if is_told:
        turn.reply(request.token, generation_answer(group, member))
    else:
        _update(member, request, turn)
        rebalance_or_complete(group, turn)


def _add(group: Group, request: JoinGroup, member_id: str, turn: Turn) -> None:
    if not len(group.roster):
        group.protocol_type = request.protocol_type
    if group.initial_delay is not None:
        group.initial_delay.has_new_member = True
    member = Member(
        id=member_id,
        instance_id=request.instance_id,
        client_id=request.client_id,
        client_host=request.client_host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=_rebalance_timeout_ms(request),
        protocols=dict(request.protocols),
        join_token=request.token,
        is_new=True,
    )
    group.roster.add(member)
    group.restart_session(turn, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalance_or_complete(group, turn)


def _update(member: Member, request: JoinGroup, turn: Turn) -> None:
    if member.join_token is not None:
        # The client has given up its earlier request, which gets an answer all the same.
        turn.reply(
            member.join_token,
            JoinAnswer(error_code=Error.REBALANCE_IN_PROGRESS, member_id=member.id),
        )
    member.join_token = request.token
    member.protocols = dict(request.protocols)
    member.session_timeout_ms = request.session_timeout_ms
    member.rebalance_timeout_ms = _rebalance_timeout_ms(request)
    member.client_id, member.client_host = request.client_id, request.client_host


def _rebalance_timeout_ms(request: JoinGroup) -> int:
    """Version 0 has no such field: the session timeout stands for it."""
    if request.rebalance_timeout_ms >= 0:
        return request.rebalance_timeout_ms
    return request.session_timeout_ms


# ---- static members ------------------------------------------------------------------------------


def _replace_static(
    group: Group, request: JoinGroup, turn: Turn, *, old_id: str, new_id: str
) -> None:
    """A static member is back under a new member id."""
    old = group.roster.get(old_id)
    assert old is not None
    leader_before = group.roster.leader or ""
    _fence(turn, old)
    group.end_session(turn, old_id)
    if old_id in group.pending_sync:
        group.pending_sync.discard(old_id)
        group.pending_sync.add(new_id)
    member = group.roster.replace_static(old, new_id)
    group.restart_session(turn, member)
    _update(member, request, turn)
    if group.state is GroupState.STABLE:
        if group.roster.select_protocol() == group.protocol_name:
            # No rebalance: the new id takes over the assignment, once the log has it.
            group.persist(
                turn,
                (encode_group(group.id, value=snapshot(group)),),
                _StaticTakeover(request, old, new_id, leader_before),
            )
        else:
            prepare_rebalance(group, turn)
    elif group.state is GroupState.COMPLETING:
        # The leader may be assigning to the old id at this moment.
        prepare_rebalance(group, turn)
    else:
        complete_if_all_joined(group, turn)


def _fence(turn: Turn, old: Member) -> None:
    """A member that still waits under the old id is another process with the same instance id."""
    if old.join_token is not None:
        answer = JoinAnswer(error_code=Error.FENCED_INSTANCE_ID, member_id=old.id)
        turn.reply(old.join_token, answer)
        old.join_token = None
    if old.sync_token is not None:
        turn.reply(old.sync_token, SyncAnswer(error_code=Error.FENCED_INSTANCE_ID))
        old.sync_token = None


@dataclass(frozen=True, slots=True)
class _StaticTakeover:
    """The new member id of a static member waits for the log."""

    request: JoinGroup
    old: Member
    new_id: str
    leader_before: str

    def on_persisted(self, group: Group, error: Error, turn: Turn) -> None:
        """Answer the join, or give the place back to the old id."""
        member = group.roster.get(self.new_id)
        if member is None or member.join_token != self.request.token:
            return  # Fenced or removed meanwhile, and answered then; or answered by a join phase.
        if group.state is not GroupState.STABLE:
            return  # A join phase has begun: it answers.
        member.join_token = None
        group.restart_session(turn, member)
        if error is not Error.NONE:
            self._give_back(group, member, turn)
            turn.reply(self.request.token, JoinAnswer(error_code=metadata_error(error)))
            return
        is_leader = group.roster.leader == member.id
        may_skip = self.request.may_skip_assignment
        turn.reply(
            self.request.token,
            JoinAnswer(
                member_id=member.id,
                generation=group.generation,
                protocol_type=group.protocol_type,
                protocol_name=group.protocol_name,
                # An old client that found itself named as leader would assign: name the old id.
                leader=(group.roster.leader or "") if may_skip else self.leader_before,
                skip_assignment=may_skip and is_leader,
                members=joined_members(group) if may_skip and is_leader else (),
            ),
        )

    def _give_back(self, group: Group, member: Member, turn: Turn) -> None:
        group.end_session(turn, member.id)
        restored = group.roster.replace_static(member, self.old.id)
        restored.protocols = self.old.protocols
        restored.session_timeout_ms = self.old.session_timeout_ms
        restored.rebalance_timeout_ms = self.old.rebalance_timeout_ms
        group.restart_session(turn, restored)
