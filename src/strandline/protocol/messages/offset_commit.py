"""Stores how far a group has read.

Source: KIP-211 (no retention from version 5), KIP-320 (leader epoch), KIP-345, KIP-848 (member
        epoch, version 9), KIP-516 (topic ids, version 10)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from strandline.protocol.table import NO_ID, F, Message


class OffsetCommitRequestPartition(Message):
    """How far the group has read one partition."""

    partition_index: Annotated[int, F("int32")] = 0
    committed_offset: Annotated[int, F("int64")] = 0
    committed_leader_epoch: Annotated[int, F("int32", "6+")] = -1
    committed_metadata: Annotated[str | None, F("string", nullable="0+")] = ""


class OffsetCommitRequestTopic(Message):
    """The partitions of one topic; by name up to version 9, by id after it."""

    name: Annotated[str, F("string", "0-9")] = ""
    topic_id: Annotated[UUID, F("uuid", "10+")] = NO_ID
    partitions: Annotated[list[OffsetCommitRequestPartition], F("[]struct")] = []


class OffsetCommitRequest(Message):
    """Offsets to store, all of one group."""

    API_KEY = 8
    VERSIONS = "2-10"
    FLEXIBLE = "8+"

    group_id: Annotated[str, F("string")] = ""
    # -1: from outside of the group
    generation_id_or_member_epoch: Annotated[int, F("int32", "1+")] = -1
    member_id: Annotated[str, F("string", "1+")] = ""
    group_instance_id: Annotated[str | None, F("string", "7+", nullable="7+")] = None
    retention_time_ms: Annotated[int, F("int64", "2-4")] = -1  # -1: the default of the broker
    topics: Annotated[list[OffsetCommitRequestTopic], F("[]struct")] = []


class OffsetCommitResponsePartition(Message):
    """The result for one offset."""

    partition_index: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0


class OffsetCommitResponseTopic(Message):
    """The partitions of one topic."""

    name: Annotated[str, F("string", "0-9")] = ""
    topic_id: Annotated[UUID, F("uuid", "10+")] = NO_ID
    partitions: Annotated[list[OffsetCommitResponsePartition], F("[]struct")] = []


class OffsetCommitResponse(Message):
    """One answer per partition."""

    API_KEY = OffsetCommitRequest.API_KEY
    VERSIONS = "2-10"
    FLEXIBLE = "8+"

    throttle_time_ms: Annotated[int, F("int32", "3+")] = 0
    topics: Annotated[list[OffsetCommitResponseTopic], F("[]struct")] = []
