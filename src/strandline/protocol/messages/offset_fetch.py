"""Reads how far a group has read; from version 8 for several groups.

Source: KIP-447 (only decided offsets, version 7), KIP-709 (several groups, version 8), KIP-848
        (member epoch, version 9), KIP-516 (topic ids, version 10)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from strandline.protocol.table import NO_ID, F, Message


class OffsetFetchRequestTopic(Message):
    """The partitions of one topic, up to version 7."""

    name: Annotated[str, F("string", "0-7")] = ""
    partition_indexes: Annotated[list[int], F("[]int32", "0-7")] = []


class OffsetFetchRequestTopics(Message):
    """The partitions of one topic, from version 8; by id from version 10."""

    name: Annotated[str, F("string", "8-9")] = ""
    topic_id: Annotated[UUID, F("uuid", "10+")] = NO_ID
    partition_indexes: Annotated[list[int], F("[]int32", "8+")] = []


class OffsetFetchRequestGroup(Message):
    """A group and what is asked about it."""

    group_id: Annotated[str, F("string", "8+")] = ""
    member_id: Annotated[str | None, F("string", "9+", nullable="9+")] = None
    member_epoch: Annotated[int, F("int32", "9+")] = -1  # -1: from outside of the group
    # null: all topics
    topics: Annotated[
        list[OffsetFetchRequestTopics] | None, F("[]struct", "8+", nullable="8+")
    ] = []


class OffsetFetchRequest(Message):
    """Asks for one group up to version 7, for several after it."""

    API_KEY = 9
    VERSIONS = "1-10"
    FLEXIBLE = "6+"

    group_id: Annotated[str, F("string", "0-7")] = ""
    # null: all topics
    topics: Annotated[
        list[OffsetFetchRequestTopic] | None, F("[]struct", "0-7", nullable="2-7")
    ] = []
    groups: Annotated[list[OffsetFetchRequestGroup], F("[]struct", "8+")] = []
    # refuse offsets that a transaction may take back
    require_stable: Annotated[bool, F("bool", "7+")] = False


class OffsetFetchResponsePartition(Message):
    """A committed offset, up to version 7; -1 when there is none."""

    partition_index: Annotated[int, F("int32", "0-7")] = 0
    committed_offset: Annotated[int, F("int64", "0-7")] = 0
    committed_leader_epoch: Annotated[int, F("int32", "5-7")] = -1
    metadata: Annotated[str | None, F("string", "0-7", nullable="0-7")] = ""
    error_code: Annotated[int, F("int16", "0-7")] = 0


class OffsetFetchResponseTopic(Message):
    """The partitions of one topic, up to version 7."""

    name: Annotated[str, F("string", "0-7")] = ""
    partitions: Annotated[list[OffsetFetchResponsePartition], F("[]struct", "0-7")] = []


class OffsetFetchResponsePartitions(Message):
    """A committed offset, from version 8; -1 when there is none."""

    partition_index: Annotated[int, F("int32", "8+")] = 0
    committed_offset: Annotated[int, F("int64", "8+")] = 0
    committed_leader_epoch: Annotated[int, F("int32", "8+")] = -1
    metadata: Annotated[str | None, F("string", "8+", nullable="8+")] = ""
    error_code: Annotated[int, F("int16", "8+")] = 0


class OffsetFetchResponseTopics(Message):
    """The partitions of one topic, from version 8."""

    name: Annotated[str, F("string", "8-9")] = ""
    topic_id: Annotated[UUID, F("uuid", "10+")] = NO_ID
    partitions: Annotated[list[OffsetFetchResponsePartitions], F("[]struct", "8+")] = []


class OffsetFetchResponseGroup(Message):
    """The offsets of one group."""

    group_id: Annotated[str, F("string", "8+")] = ""
    topics: Annotated[list[OffsetFetchResponseTopics], F("[]struct", "8+")] = []
    error_code: Annotated[int, F("int16", "8+")] = 0


class OffsetFetchResponse(Message):
    """Topics up to version 7, groups after it."""

    API_KEY = OffsetFetchRequest.API_KEY
    VERSIONS = "1-10"
    FLEXIBLE = "6+"

    throttle_time_ms: Annotated[int, F("int32", "3+")] = 0
    topics: Annotated[list[OffsetFetchResponseTopic], F("[]struct", "0-7")] = []
    error_code: Annotated[int, F("int16", "2-7")] = 0
    groups: Annotated[list[OffsetFetchResponseGroup], F("[]struct", "8+")] = []
