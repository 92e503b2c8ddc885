"""The answers of a group: one of these for each request, by kind.

How:    `error_code` is Kafka's, 0 for success.
Source: Kafka's JoinGroup, SyncGroup, Heartbeat, LeaveGroup, OffsetCommit, DeleteGroups,
        OffsetDelete answers."""

import msgspec


class JoinedMember(msgspec.Struct, frozen=True):
    """A member as the group's leader sees it, with its metadata for the chosen protocol."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class JoinAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The generation that a client is a member of; only the leader gets `members`."""

    error_code: int = 0
    member_id: str = ""
    generation: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


class SyncAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A member's assignment, as the leader made it."""

    error_code: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class HeartbeatAnswer(msgspec.Struct, frozen=True):
    """Whether the group is unchanged, or the error that makes the member join again."""

    error_code: int = 0


class LeftMember(msgspec.Struct, frozen=True):
    """The result for one leaving member."""

    member_id: str
    instance_id: str | None
    error_code: int = 0


class LeaveAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One result a member; `error_code` for the request as a whole."""

    error_code: int = 0
    members: tuple[LeftMember, ...] = ()


class CommittedPartition(msgspec.Struct, frozen=True):
    """The result for one offset."""

    topic: str
    partition: int
    error_code: int = 0


class CommitAnswer(msgspec.Struct, frozen=True):
    """One result for each offset of the request, in its order."""

    partitions: tuple[CommittedPartition, ...]


class DeleteAnswer(msgspec.Struct, frozen=True):
    """The result for one group that was to be deleted."""

    error_code: int = 0


class DeletedOffset(msgspec.Struct, frozen=True):
    """What became of one offset that was to be removed."""

    topic: str
    partition: int
    error_code: int = 0


class DeleteOffsetsAnswer(msgspec.Struct, frozen=True):
    """One result for each partition of the request, in its order; `error_code` for the request as
    a whole."""

    error_code: int = 0
    partitions: tuple[DeletedOffset, ...] = ()


Answer = (
    JoinAnswer
    | SyncAnswer
    | HeartbeatAnswer
    | LeaveAnswer
    | CommitAnswer
    | DeleteAnswer
    | DeleteOffsetsAnswer
)
