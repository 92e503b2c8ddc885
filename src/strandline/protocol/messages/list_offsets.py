"""Offsets by time: earliest, latest, or the first record at or after a timestamp.

Source: KIP-79, KIP-98 (isolation level), KIP-320 (epochs), KIP-734 (newest timestamp), KIP-405
        (tiered)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class ListOffsetsPartition(Message):
    """One partition and the time asked for."""

    partition_index: Annotated[int, F("int32")] = 0
    current_leader_epoch: Annotated[int, F("int32", "4+")] = -1
    # ms; -1 latest, -2 earliest, -3 newest timestamp, -4 earliest local, -5 last tiered
    timestamp: Annotated[int, F("int64")] = 0


class ListOffsetsTopic(Message):
    """The partitions of one topic."""

    name: Annotated[str, F("string")] = ""
    partitions: Annotated[list[ListOffsetsPartition], F("[]struct")] = []


class ListOffsetsRequest(Message):
    """Asks for one offset per partition."""

    API_KEY = 2
    VERSIONS = "1-11"
    FLEXIBLE = "6+"

    replica_id: Annotated[int, F("int32")] = 0  # -1: a consumer
    isolation_level: Annotated[int, F("int8", "2+")] = 0  # 1: latest is the last stable offset
    topics: Annotated[list[ListOffsetsTopic], F("[]struct")] = []
    timeout_ms: Annotated[int, F("int32", "10+")] = 0  # for answers that tiered storage has to find


class ListOffsetsPartitionResponse(Message):
    """The offset found, -1 when there is none."""

    partition_index: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    timestamp: Annotated[int, F("int64", "1+")] = -1
    offset: Annotated[int, F("int64", "1+")] = -1
    leader_epoch: Annotated[int, F("int32", "4+")] = -1


class ListOffsetsTopicResponse(Message):
    """The partitions of one topic."""

    name: Annotated[str, F("string")] = ""
    partitions: Annotated[list[ListOffsetsPartitionResponse], F("[]struct")] = []


class ListOffsetsResponse(Message):
    """One answer per partition of the request."""

    API_KEY = ListOffsetsRequest.API_KEY
    VERSIONS = "1-11"
    FLEXIBLE = "6+"

    throttle_time_ms: Annotated[int, F("int32", "2+")] = 0
    topics: Annotated[list[ListOffsetsTopicResponse], F("[]struct")] = []
