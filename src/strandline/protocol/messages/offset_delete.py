"""Forgets committed offsets of a group.

Source: KIP-496."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class OffsetDeleteRequestPartition(Message):
    """A partition to forget."""

    partition_index: Annotated[int, F("int32")] = 0


class OffsetDeleteRequestTopic(Message):
    """The partitions of one topic."""

    name: Annotated[str, F("string")] = ""
    partitions: Annotated[list[OffsetDeleteRequestPartition], F("[]struct")] = []


class OffsetDeleteRequest(Message):
    """Offsets to forget, all of one group."""

    API_KEY = 47
    VERSIONS = "0"
    FLEXIBLE = "none"

    group_id: Annotated[str, F("string")] = ""
    topics: Annotated[list[OffsetDeleteRequestTopic], F("[]struct")] = []


class OffsetDeleteResponsePartition(Message):
    """The result for one offset."""

    partition_index: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0


class OffsetDeleteResponseTopic(Message):
    """The partitions of one topic."""

    name: Annotated[str, F("string")] = ""
    partitions: Annotated[list[OffsetDeleteResponsePartition], F("[]struct")] = []


class OffsetDeleteResponse(Message):
    """One answer per partition, unless the group itself is refused."""

    API_KEY = OffsetDeleteRequest.API_KEY
    VERSIONS = "0"
    FLEXIBLE = "none"

    error_code: Annotated[int, F("int16")] = 0
    throttle_time_ms: Annotated[int, F("int32")] = 0
    topics: Annotated[list[OffsetDeleteResponseTopic], F("[]struct")] = []
