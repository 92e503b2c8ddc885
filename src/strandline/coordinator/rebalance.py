"""The join phase: it begins when membership changes, and ends with a new generation.

How:    prepare_rebalance --all members have joined, or the timer--> complete_join
        The first join phase of a group waits for a fixed delay. It waits again while new members
        join, up to the longest rebalance timeout: members that start together get one assignment.
Source: Kafka's classic group protocol; KIP-134 (initial delay); KIP-345 (static members stay)."""

from strandline.coordinator.answers import JoinAnswer, JoinedMember, SyncAnswer
from strandline.coordinator.effects import Turn
from strandline.coordinator.group import (
    JOIN_TIMER,
    SYNC_TIMER,
    Group,
    GroupState,
    InitialDelay,
)
from strandline.coordinator.log_records import GroupSnapshot, MemberSnapshot, encode_group
from strandline.coordinator.members import Member
from strandline.protocol.errors import Error


def rebalance_or_complete(group: Group, turn: Turn) -> None:
    """After a change of members: begin a join phase, or end the present one if all have joined."""
    if group.can_rebalance:
        prepare_rebalance(group, turn)
    else:
        complete_if_all_joined(group, turn)


def prepare_rebalance(group: Group, turn: Turn) -> None:
    """Begin a join phase: members learn of it from their next heartbeat and join again."""
    if group.state is GroupState.COMPLETING:
        reset_assignments(group, turn, Error.REBALANCE_IN_PROGRESS)
    stop_sync_phase(group, turn)
    is_initial = group.state is GroupState.EMPTY
    group.move(GroupState.PREPARING, turn)
    group.initial_delay = None
    if is_initial:
        delay_ms = turn.settings.initial_rebalance_delay_ms
        remaining_ms = max(group.roster.rebalance_timeout_ms - delay_ms, 0)
        group.initial_delay = InitialDelay(delay_ms, remaining_ms)
        group.set_timer(turn, JOIN_TIMER, delay_ms)
    elif group.roster.has_all_joined:
        complete_join(group, turn)
    else:
        group.set_timer(turn, JOIN_TIMER, group.roster.rebalance_timeout_ms)


def complete_if_all_joined(group: Group, turn: Turn) -> None:
    """End the join phase if all members have joined. Only its timer ends the initial one."""
    if (
        group.state is GroupState.PREPARING
        and group.initial_delay is None
        and group.roster.has_all_joined
    ):
        complete_join(group, turn)


def on_join_timer(group: Group, turn: Turn) -> None:
    """On the timer of the join phase: wait again if it is the initial one and new members came, or
    else end it."""
    if group.state is not GroupState.PREPARING:
        return
    delay = group.initial_delay
    if delay is not None and delay.has_new_member and delay.remaining_ms > 0:
        next_ms = min(turn.settings.initial_rebalance_delay_ms, delay.remaining_ms)
        group.initial_delay = InitialDelay(next_ms, max(delay.remaining_ms - delay.delay_ms, 0))
        group.set_timer(turn, JOIN_TIMER, next_ms)
    else:
        complete_join(group, turn)


def complete_join(group: Group, turn: Turn) -> None:
    """End the join phase: remove members that have not joined, except static ones, and answer the
    others."""
    group.cancel_timer(turn, JOIN_TIMER)
    for member in group.roster:
        if member.join_token is None and not member.is_static:
            remove_member(group, turn, member)
    if len(group.roster) and not group.roster.elect_joined_leader():
        # Only static members are left, and none has joined. Their sessions will end.
        group.set_timer(turn, JOIN_TIMER, group.roster.rebalance_timeout_ms)
        return
    group.initial_delay = None
    group.generation += 1
    group.pending_sync.clear()
    if not len(group.roster):
        group.protocol_name = None
        group.move(GroupState.EMPTY, turn)
        group.persist(turn, (encode_group(group.id, value=snapshot(group)),), EmptiedGroup())
        return
    group.protocol_name = group.roster.select_protocol()
    group.move(GroupState.COMPLETING, turn)
    for member in group.roster:
        answer_join(group, turn, member)
        member.is_new = False
        member.latest_commits.clear()
        group.restart_session(turn, member)
        group.pending_sync.add(member.id)
    group.set_timer(turn, SYNC_TIMER, group.roster.rebalance_timeout_ms)


class EmptiedGroup:
    """The record that a group is empty: no request waits for it, and a failure has no effect."""

    def on_persisted(self, group: Group, error: Error, turn: Turn) -> None:
        """Nothing to do."""


def remove_member(group: Group, turn: Turn, member: Member) -> None:
    """Remove a member. If its client still runs, it joins again as a new member."""
    group.roster.remove(member.id)
    group.pending_sync.discard(member.id)
    group.end_session(turn, member.id)
    if member.join_token is not None:
        turn.reply(member.join_token, JoinAnswer(error_code=Error.UNKNOWN_MEMBER_ID))
    if member.sync_token is not None:
        turn.reply(member.sync_token, SyncAnswer(error_code=Error.UNKNOWN_MEMBER_ID))
    member.join_token = member.sync_token = None


def answer_join(group: Group, turn: Turn, member: Member) -> None:
    """Answer a member's JoinGroup with the generation, if one waits."""
    token, member.join_token = member.join_token, None
    if token is not None:
        turn.reply(token, generation_answer(group, member))


def generation_answer(group: Group, member: Member) -> JoinAnswer:
    """The answer to a member's JoinGroup. Only the leader's lists the members."""
    is_leader = group.roster.leader == member.id
    return JoinAnswer(
        member_id=member.id,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.roster.leader or "",
        members=joined_members(group) if is_leader else (),
    )


def joined_members(group: Group) -> tuple[JoinedMember, ...]:
    """All members, with their metadata for the chosen protocol."""
    name = group.protocol_name or ""
    return tuple(
        JoinedMember(member.id, member.instance_id, member.protocols[name])
        for member in group.roster
    )


def reset_assignments(group: Group, turn: Turn, error: Error) -> None:
    """Clear all assignments. Members that wait for theirs get `error`."""
    for member in group.roster:
        member.assignment = b""
        answer_sync(group, turn, member, error)


def answer_sync(group: Group, turn: Turn, member: Member, error: Error = Error.NONE) -> None:
    """Answer a member's SyncGroup with its assignment or with `error`, if one waits."""
    token, member.sync_token = member.sync_token, None
    if token is None:
        return
    if error is Error.NONE:
        turn.reply(token, assignment_answer(group, member))
    else:
        turn.reply(token, SyncAnswer(error_code=error))
    group.restart_session(turn, member)


def assignment_answer(group: Group, member: Member) -> SyncAnswer:
    """The answer to a member's SyncGroup."""
    return SyncAnswer(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )


def stop_sync_phase(group: Group, turn: Turn) -> None:
    """End the sync phase: no member has to ask for its assignment in this generation."""
    group.pending_sync.clear()
    group.cancel_timer(turn, SYNC_TIMER)


def snapshot(group: Group, assignments: dict[str, bytes] | None = None) -> GroupSnapshot:
    """The group as the log stores it. `assignments`: {member id: assignment}, if these are not in
    force yet."""
    name = group.protocol_name or ""
    return GroupSnapshot(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol_name,
        leader=group.roster.leader,
        state_since_ms=group.state_since_ms,
        members=tuple(
            MemberSnapshot(
                id=member.id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                session_timeout_ms=member.session_timeout_ms,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                subscription=member.protocols.get(name, b""),
                assignment=(
                    member.assignment if assignments is None else assignments.get(member.id, b"")
                ),
            )
            for member in group.roster
        ),
    )
