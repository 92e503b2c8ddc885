"""The records of `__consumer_offsets`, between Kafka's schema and the values that groups work with.

Why:    Kafka's tools, and tools that migrate a cluster, must be able to read the log, so it is
        Kafka's to the byte; the machines need less.
How:    `protocol.offsets_records` has the schema. A value of None removes the key. Other kinds of
        keys (newer group protocols) are skipped.
Source: kafka-protocol reference 8.3."""

from uuid import UUID

import msgspec

from strandline.coordinator.effects import LogRecord
from strandline.protocol.offsets_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from strandline.protocol.table import NO_ID

NEVER = -1
TopicPartition = tuple[str, int]


class CommittedOffset(msgspec.Struct, frozen=True):
    """The committed offset of a group in a partition. Times are wall clock milliseconds.

    `expire_ms` is set by old clients only; -1 stands for the cluster's retention. `topic_id` is not
    written beside an expiry, as in Kafka."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int = NEVER
    topic_id: UUID = NO_ID

    def belongs_to(self, topic_id: UUID) -> bool:
        """Whether it was committed for this topic id, not for an earlier topic of the name."""
        return NO_ID in (self.topic_id, topic_id) or self.topic_id == topic_id


class MemberSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A member of a stable generation. `subscription`: its metadata for the chosen protocol."""

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A group as its last assignment, or its last member's leaving, left it."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    state_since_ms: int
    members: tuple[MemberSnapshot, ...]


class OffsetRecord(msgspec.Struct, frozen=True):
    """A commit; without a value, its removal."""

    group: str
    topic: str
    partition: int
    value: CommittedOffset | None


class GroupRecord(msgspec.Struct, frozen=True):
    """A group's metadata; without a value, its removal."""

    group: str
    value: GroupSnapshot | None


def encode_offset(
    group: str, topic: str, partition: int, *, value: CommittedOffset | None
) -> LogRecord:
    """The record of one committed offset."""
    key = encode_key(OffsetCommitKey(group=group, topic=topic, partition=partition))
    if value is None:
        return key, None
    row = OffsetCommitValue(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp=value.commit_ms,
        expire_timestamp=value.expire_ms,
        topic_id=value.topic_id,
    )
    return key, encode_value(row)


def encode_group(group: str, *, value: GroupSnapshot | None) -> LogRecord:
    """The record of a group's metadata."""
    key = encode_key(GroupMetadataKey(group=group))
    if value is None:
        return key, None
    row = GroupMetadataValue(
        protocol_type=value.protocol_type,
        generation=value.generation,
        protocol=value.protocol,
        leader=value.leader,
        current_state_timestamp=value.state_since_ms,
        members=[
            MemberMetadata(
                member_id=member.id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.subscription,
                assignment=member.assignment,
            )
            for member in value.members
        ],
    )
    return key, encode_value(row)


def decode_log_record(key: bytes, value: bytes | None) -> OffsetRecord | GroupRecord | None:
    """The content of a record; None for kinds that classic groups do not use.

    Raises ProtocolError."""
    row = decode_key(key)
    if isinstance(row, OffsetCommitKey):
        committed = None if value is None else _decode_offset(value)
        return OffsetRecord(row.group, row.topic, row.partition, committed)
    if isinstance(row, GroupMetadataKey):
        return GroupRecord(row.group, None if value is None else _decode_group(value))
    return None


def _decode_offset(value: bytes) -> CommittedOffset:
    row = decode_value(OffsetCommitValue, value)
    return CommittedOffset(
        offset=row.offset,
        leader_epoch=row.leader_epoch,
        metadata=row.metadata,
        commit_ms=row.commit_timestamp,
        expire_ms=row.expire_timestamp,
        topic_id=row.topic_id,
    )


def _decode_group(value: bytes) -> GroupSnapshot:
    row = decode_value(GroupMetadataValue, value)
    return GroupSnapshot(
        protocol_type=row.protocol_type,
        generation=row.generation,
        protocol=row.protocol,
        leader=row.leader,
        state_since_ms=row.current_state_timestamp,
        members=tuple(_member(member) for member in row.members),
    )


def _member(row: MemberMetadata) -> MemberSnapshot:
    has_rebalance_timeout = row.rebalance_timeout >= 0
    return MemberSnapshot(
        id=row.member_id,
        instance_id=row.group_instance_id,
        client_id=row.client_id,
        client_host=row.client_host,
        session_timeout_ms=row.session_timeout,
        rebalance_timeout_ms=row.rebalance_timeout
        if has_rebalance_timeout
        else row.session_timeout,
        subscription=row.subscription,
        assignment=row.assignment,
    )
