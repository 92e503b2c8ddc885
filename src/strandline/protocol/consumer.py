"""The messages between the members of a consumer group, inside JoinGroup and SyncGroup.

Why:    they are opaque bytes to the broker, but a command that describes a group reads them.
How:    an int16 version and plain fields, never flexible. A version newer than ours is read as our
        newest: later ones may only add fields at the end.
Source: kafka-protocol reference 8.2; KIP-429 (owned partitions), KIP-792 (generation), KIP-881
        (rack)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated, TypeVar

from strandline.base.disk import Buffer
from strandline.base.errors import ProtocolError
from strandline.protocol.codec import decode, encode
from strandline.protocol.table import F, Message, VersionRange


class TopicPartition(Message):
    """Some partitions of a topic."""

    topic: Annotated[str, F("string")] = ""
    partitions: Annotated[list[int], F("[]int32")] = []


class ConsumerProtocolSubscription(Message):
    """The topics that a member subscribes to."""

    VERSIONS = "0-3"

    topics: Annotated[list[str], F("[]string")] = []
    user_data: Annotated[bytes | None, F("bytes", nullable="0+")] = None
    owned_partitions: Annotated[list[TopicPartition], F("[]struct", "1+")] = []
    generation_id: Annotated[int, F("int32", "2+")] = -1
    rack_id: Annotated[str | None, F("string", "3+", nullable="3+")] = None


class ConsumerProtocolAssignment(Message):
    """The partitions assigned to a member."""

    VERSIONS = "0-3"

    assigned_partitions: Annotated[list[TopicPartition], F("[]struct")] = []
    user_data: Annotated[bytes | None, F("bytes", nullable="0+")] = None


B = TypeVar("B", ConsumerProtocolSubscription, ConsumerProtocolAssignment)


def encode_subscription(subscription: ConsumerProtocolSubscription, version: int = 3) -> bytes:
    """Write a subscription, its version in front."""
    return version.to_bytes(2, "big") + encode(subscription, version)


def decode_subscription(data: Buffer) -> ConsumerProtocolSubscription:
    """Read a subscription. Raises ProtocolError."""
    return _decode(ConsumerProtocolSubscription, data)


def encode_assignment(assignment: ConsumerProtocolAssignment, version: int = 3) -> bytes:
    """Write an assignment, its version in front."""
    return version.to_bytes(2, "big") + encode(assignment, version)


def decode_assignment(data: Buffer) -> ConsumerProtocolAssignment:
    """Read an assignment; empty bytes mean nothing is assigned. Raises ProtocolError."""
    if not len(data):
        return ConsumerProtocolAssignment()
    return _decode(ConsumerProtocolAssignment, data)


def _decode(cls: type[B], data: Buffer) -> B:
    if len(data) < 2:
        raise ProtocolError(f"{cls.__name__} without its version")
    version = int.from_bytes(data[:2], "big", signed=True)
    if version < 0:
        raise ProtocolError(f"{cls.__name__} of version {version}")
    message, _ = decode(cls, data, 2, min(version, VersionRange.parse(cls.VERSIONS).last))
    return message
