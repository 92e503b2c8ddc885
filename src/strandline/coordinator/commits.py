"""Offsets: which commits a group accepts, when they take effect, and how a group is deleted.

How:    The group writes a commit first, and applies it once the record is committed; reads in
        between get the value before it. A member that lost its connection sends its commit again
        over another one. A commit that was delayed on the first connection may arrive after later
        ones, and must not set the group back (Kafka accepts it). Deleting a group removes its
        offsets and those that are being written.
Source: Kafka's OffsetCommit, OffsetFetch, DeleteGroups."""

from dataclasses import dataclass

from strandline.coordinator.answers import CommitAnswer, CommittedPartition, DeleteAnswer
from strandline.coordinator.effects import LogRecord, Turn
from strandline.coordinator.group import Group, GroupState
from strandline.coordinator.log_records import (
    NEVER,
    CommittedOffset,
    TopicPartition,
    encode_group,
    encode_offset,
)
from strandline.coordinator.members import Member
from strandline.coordinator.requests import CommitOffsets, DeleteGroup, OffsetToCommit
from strandline.coordinator.write_errors import commit_error, metadata_error
from strandline.protocol.errors import Error


def on_commit(group: Group, request: CommitOffsets, turn: Turn) -> None:
    """Write offsets; the group accepts or refuses each one separately."""
    error = _refusal(group, request)
    if error is not Error.NONE:
        answer_commit(turn, request, dict.fromkeys(range(len(request.offsets)), error))
        return
    if request.generation >= 0 and group.state in (GroupState.STABLE, GroupState.PREPARING):
        member = group.roster.get(request.member_id)
        assert member is not None
        group.restart_session(turn, member)
    refused = _refused(group.roster.get(request.member_id), request, turn)
    taken = {
        (wanted.topic, wanted.partition): _committed(wanted, request, turn)
        for position, wanted in enumerate(request.offsets)
        if position not in refused
    }
    if not taken:
        answer_commit(turn, request, refused)
        return
    group.commits_in_flight.update(taken.keys())
    _note(group.roster.get(request.member_id), request, taken)
    records = tuple(
        encode_offset(group.id, topic, partition, value=value)
        for (topic, partition), value in taken.items()
    )
    group.persist(turn, records, _Commit(request, refused, taken))


def _refusal(group: Group, request: CommitOffsets) -> Error:
    if group.state is GroupState.DEAD:
        return Error.COORDINATOR_NOT_AVAILABLE
    if request.generation < 0 and group.state is GroupState.EMPTY:
        return Error.NONE  # An operator's tool, or a consumer that assigns partitions by itself.
    is_member = request.generation >= 0 or request.member_id or request.instance_id is not None
    if not is_member:
        return Error.UNKNOWN_MEMBER_ID
    error = group.check_member(request.member_id, request.instance_id)
    if error is not Error.NONE:
        return error
    if request.generation != group.generation:
        return Error.ILLEGAL_GENERATION
    if group.state is GroupState.COMPLETING:
        return Error.REBALANCE_IN_PROGRESS
    return Error.NONE


def _refused(member: Member | None, request: CommitOffsets, turn: Turn) -> dict[int, Error]:
    """{position: why the offset is not written}. A commit that a later one of the same member has
    overtaken gets an error that allows a retry: its client has given up the older connection."""
    refused: dict[int, Error] = {}
    for position, wanted in enumerate(request.offsets):
        key = wanted.topic, wanted.partition
        if _characters(wanted.metadata or "") > turn.settings.offset_metadata_characters_max:
            refused[position] = Error.OFFSET_METADATA_TOO_LARGE
        elif member and member.is_overtaken(key, request.connection, wanted.offset):
            refused[position] = Error.COORDINATOR_LOAD_IN_PROGRESS
    return refused


def _characters(metadata: str) -> int:
    """Its length as Kafka counts it, in UTF-16 units, although the key that bounds it says bytes:
    a character beyond the basic plane counts twice."""
    return len(metadata.encode("utf-16-le", "surrogatepass")) // 2


def _note(
    member: Member | None, request: CommitOffsets, taken: dict[TopicPartition, CommittedOffset]
) -> None:
    if member is not None and request.connection:
        for key, value in taken.items():
            member.latest_commits[key] = request.connection, value.offset


def _committed(wanted: OffsetToCommit, request: CommitOffsets, turn: Turn) -> CommittedOffset:
    has_retention = request.retention_ms >= 0
    return CommittedOffset(
        offset=wanted.offset,
        leader_epoch=wanted.leader_epoch,
        metadata=wanted.metadata or "",
        commit_ms=turn.now_ms,
        expire_ms=turn.now_ms + request.retention_ms if has_retention else NEVER,
        topic_id=wanted.topic_id,
    )


@dataclass(frozen=True, slots=True)
class _Commit:
    """Offsets wait for the log."""

    request: CommitOffsets
    refused: dict[int, Error]
    taken: dict[TopicPartition, CommittedOffset]

    def on_persisted(self, group: Group, error: Error, turn: Turn) -> None:
        """Apply the offsets, or keep the earlier ones if the write failed."""
        group.commits_in_flight.subtract(self.taken.keys())
        group.commits_in_flight = +group.commits_in_flight
        results = dict(self.refused)
        if error is Error.NONE:
            group.offsets.update(self.taken)
        else:
            code = commit_error(error)
            for position in range(len(self.request.offsets)):
                results.setdefault(position, code)
        answer_commit(turn, self.request, results)


def answer_commit(turn: Turn, request: CommitOffsets, errors: dict[int, Error]) -> None:
    """Answer each offset of a request; `errors` by position, success for the others."""
    partitions = tuple(
        CommittedPartition(wanted.topic, wanted.partition, errors.get(position, Error.NONE))
        for position, wanted in enumerate(request.offsets)
    )
    turn.reply(request.token, CommitAnswer(partitions))


# ---- deletion ------------------------------------------------------------------------------------


def on_delete(group: Group, request: DeleteGroup, turn: Turn) -> None:
    """Remove a group that has no members, and everything it has committed."""
    if group.state is GroupState.DEAD:
        turn.reply(request.token, DeleteAnswer(Error.GROUP_ID_NOT_FOUND))
    elif group.state is not GroupState.EMPTY:
        turn.reply(request.token, DeleteAnswer(Error.NON_EMPTY_GROUP))
    else:
        remove_group(group, turn, request.token)


def remove_group(group: Group, turn: Turn, token: int | None) -> None:
    """Write the group out of the log; while that lasts it is dead."""
    assert group.state is GroupState.EMPTY
    for member_id in sorted(group.roster.pending):
        group.end_session(turn, member_id)
    group.roster.pending.clear()
    group.move(GroupState.DEAD, turn)
    keys = sorted(set(group.offsets) | set(group.commits_in_flight))
    records: list[LogRecord] = [
        encode_offset(group.id, topic, partition, value=None) for topic, partition in keys
    ]
    records.append(encode_group(group.id, value=None))
    group.persist(turn, tuple(records), _Removal(token))


@dataclass(frozen=True, slots=True)
class _Removal:
    """A group waits for its end."""

    token: int | None

    def on_persisted(self, group: Group, error: Error, turn: Turn) -> None:
        """The group is gone, or lives on."""
        if error is Error.NONE:
            group.offsets.clear()
            group.is_gone = True
        else:
            group.move(GroupState.EMPTY, turn)
        if self.token is not None:
            turn.reply(self.token, DeleteAnswer(metadata_error(error)))
