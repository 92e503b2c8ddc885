"""The events of a group: clients' requests, timers, and the result of a write to the log.

How:    plain values; each request has the `token` under which its one answer is given.
Source: Kafka's JoinGroup, SyncGroup, Heartbeat, LeaveGroup, OffsetCommit, DeleteGroups,
        OffsetDelete requests."""

from uuid import UUID

import msgspec

from strandline.protocol.errors import Error
from strandline.protocol.table import NO_ID

NO_MEMBER = ""
"""The member id of a client that has none yet."""

NO_GENERATION = -1
NO_RETENTION = -1


class JoinGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A client asks to be a member, again or for the first time. `protocols`: (name, metadata),
    the preferred first. `knows_member_ids` (version 4 and later): a new member gets its id
    first and joins with it. `may_skip_assignment`: from version 9 on."""

    token: int
    group: str
    member_id: str = NO_MEMBER
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    knows_member_ids: bool = True
    may_skip_assignment: bool = True


class SyncGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A member asks for its assignment; the leader brings all of them: (member id, assignment)."""

    token: int
    group: str
    generation: int
    member_id: str
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[tuple[str, bytes], ...] = ()


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """A member is alive."""

    token: int
    group: str
    generation: int
    member_id: str
    instance_id: str | None = None


class LeavingMember(msgspec.Struct, frozen=True):
    """The member that leaves: by member id, or a static member by its instance id, for an
    operator."""

    member_id: str
    instance_id: str | None = None


class LeaveGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Members leave, each with its own answer."""

    token: int
    group: str
    members: tuple[LeavingMember, ...]


class OffsetToCommit(msgspec.Struct, frozen=True):
    """The offset of a group in one partition. `leader_epoch`: -1 if the client knows none."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str | None = ""
    topic_id: UUID = NO_ID


class CommitOffsets(msgspec.Struct, frozen=True, kw_only=True):
    """Commit offsets: as a member, or (no member id, no generation) from outside an empty group.

    `retention_ms` is what old clients ask for; -1: as the cluster has it. `connection` is the
    number of the client's connection, later ones have larger ones; 0: not known."""

    token: int
    group: str
    offsets: tuple[OffsetToCommit, ...]
    generation: int = NO_GENERATION
    member_id: str = NO_MEMBER
    instance_id: str | None = None
    retention_ms: int = NO_RETENTION
    connection: int = 0


class DeleteGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Remove an empty group with its offsets."""

    token: int
    group: str


class DeleteOffsets(msgspec.Struct, frozen=True, kw_only=True):
    """Remove the offsets of these partitions, (topic, index)."""

    token: int
    group: str
    partitions: tuple[tuple[str, int], ...]


Request = (
    JoinGroup | SyncGroup | Heartbeat | LeaveGroup | CommitOffsets | DeleteGroup | DeleteOffsets
)


def lacks_group_id(request: Request) -> bool:
    """Whether the group id is empty, and the request needs one. Old consumers commit offsets under
    the empty id, so it can be deleted, too; it has no members."""
    return not request.group and isinstance(request, JoinGroup | SyncGroup | Heartbeat | LeaveGroup)


class TimerFired(msgspec.Struct, frozen=True):
    """The delay of a `SetTimer` has gone by."""

    group: str
    name: str


class Persisted(msgspec.Struct, frozen=True):
    """The records of a `Persist` are committed (`error` NONE), or will never be known to be."""

    group: str
    ticket: int
    error: Error = Error.NONE


class ExpireOffsets(msgspec.Struct, frozen=True):
    """Remove expired offsets."""

    group: str


class TopicsDeleted(msgspec.Struct, frozen=True):
    """These topics, {name: id}, are deleted, so their offsets are void."""

    group: str
    topics: dict[str, UUID]


Event = Request | TimerFired | Persisted | ExpireOffsets | TopicsDeleted
