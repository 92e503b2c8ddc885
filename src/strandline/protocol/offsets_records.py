"""The keys and values of the records in `__consumer_offsets`, in Kafka's own schema.

Why:    Kafka's tools can read a group's offsets, and offsets can be moved from and to Kafka.
How:    a key is an int16 kind (0 and 1: an offset, 2: a group) and its plain fields; a value is an
        int16 version and its fields, flexible from version 4. A record without a value is a
        tombstone. Kafka has more kinds of keys, for newer kinds of groups; readers skip them, and
        `decode_key` returns None.
Source: kafka-protocol reference 8.3; KIP-915 (new fields come as tags); Kafka 4.4 writes offsets in
        version 4, or 1 with an expiry time, and groups in version 3, and so do we."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated, TypeVar
from uuid import UUID

from strandline.base.disk import Buffer
from strandline.base.errors import ProtocolError
from strandline.protocol.codec import decode, encode
from strandline.protocol.table import NO_ID, F, Message, VersionRange

OFFSET_KEY_VERSION = 1
GROUP_KEY_VERSION = 2
_NO_EXPIRY = -1


class OffsetCommitKey(Message):
    """Which offset."""

    VERSIONS = "0-1"

    group: Annotated[str, F("string")] = ""
    topic: Annotated[str, F("string")] = ""
    partition: Annotated[int, F("int32")] = 0


class OffsetCommitValue(Message):
    """How far the group has read."""

    VERSIONS = "0-4"
    FLEXIBLE = "4+"

    offset: Annotated[int, F("int64")] = 0
    leader_epoch: Annotated[int, F("int32", "3+")] = -1
    metadata: Annotated[str, F("string")] = ""
    commit_timestamp: Annotated[int, F("int64")] = 0  # ms
    expire_timestamp: Annotated[int, F("int64", "1")] = -1  # ms; -1: the broker's rule
    topic_id: Annotated[UUID, F("uuid", "4+", tag=0)] = NO_ID


class GroupMetadataKey(Message):
    """Which group."""

    VERSIONS = "2"

    group: Annotated[str, F("string")] = ""


class MemberMetadata(Message):
    """A member of a classic group. Timeouts are in ms."""

    member_id: Annotated[str, F("string")] = ""
    group_instance_id: Annotated[str | None, F("string", "3+", nullable="3+")] = None
    client_id: Annotated[str, F("string")] = ""
    client_host: Annotated[str, F("string")] = ""
    rebalance_timeout: Annotated[int, F("int32", "1+")] = -1
    session_timeout: Annotated[int, F("int32")] = 0
    subscription: Annotated[bytes, F("bytes")] = b""
    assignment: Annotated[bytes, F("bytes")] = b""


class GroupMetadataValue(Message):
    """A generation of a classic group."""

    VERSIONS = "0-4"
    FLEXIBLE = "4+"

    protocol_type: Annotated[str, F("string")] = ""
    generation: Annotated[int, F("int32")] = 0
    protocol: Annotated[str | None, F("string", nullable="0+")] = ""
    leader: Annotated[str | None, F("string", nullable="0+")] = ""
    current_state_timestamp: Annotated[int, F("int64", "2+")] = -1  # ms
    members: Annotated[list[MemberMetadata], F("[]struct")] = []


V = TypeVar("V", OffsetCommitValue, GroupMetadataValue)


def encode_key(key: OffsetCommitKey | GroupMetadataKey) -> bytes:
    """Write a key, its kind in front."""
    version = OFFSET_KEY_VERSION if isinstance(key, OffsetCommitKey) else GROUP_KEY_VERSION
    return version.to_bytes(2, "big") + encode(key, version)


def decode_key(data: Buffer) -> OffsetCommitKey | GroupMetadataKey | None:
    """Read a key; None for a kind that is not known here. Raises ProtocolError."""
    version = _version(data)
    key: OffsetCommitKey | GroupMetadataKey
    if VersionRange.parse(OffsetCommitKey.VERSIONS).has(version):
        key, _ = decode(OffsetCommitKey, data, 2, version)
    elif version == GROUP_KEY_VERSION:
        key, _ = decode(GroupMetadataKey, data, 2, version)
    else:
        return None
    return key


def encode_value(
    value: OffsetCommitValue | GroupMetadataValue, version: int | None = None
) -> bytes:
    """Write a value, its version in front: Kafka's choice unless one is given."""
    if version is None:
        if isinstance(value, GroupMetadataValue):
            version = 3
        else:
            version = 4 if value.expire_timestamp == _NO_EXPIRY else 1
    return version.to_bytes(2, "big") + encode(value, version)


def decode_value(cls: type[V], data: Buffer) -> V:
    """Read the value that belongs to a key. Raises ProtocolError, for unknown versions too."""
    version = _version(data)
    if not VersionRange.parse(cls.VERSIONS).has(version):
        raise ProtocolError(f"{cls.__name__} of version {version}")
    value, _ = decode(cls, data, 2, version)
    return value


def _version(data: Buffer) -> int:
    if len(data) < 2:
        raise ProtocolError("a key or value without its version")
    return int.from_bytes(data[:2], "big", signed=True)
