"""Moves the start of partitions forward.

Source: KIP-107, KIP-204."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class DeleteRecordsPartition(Message):
    """A partition and its new start."""

    partition_index: Annotated[int, F("int32")] = 0
    offset: Annotated[int, F("int64")] = 0  # first to be kept; -1: the high watermark


class DeleteRecordsTopic(Message):
    """The partitions of one topic."""

    name: Annotated[str, F("string")] = ""
    partitions: Annotated[list[DeleteRecordsPartition], F("[]struct")] = []


class DeleteRecordsRequest(Message):
    """Partitions to cut at the front."""

    API_KEY = 21
    VERSIONS = "0-2"
    FLEXIBLE = "2+"

    topics: Annotated[list[DeleteRecordsTopic], F("[]struct")] = []
    timeout_ms: Annotated[int, F("int32")] = 0


class DeleteRecordsPartitionResult(Message):
    """The start of the partition now."""

    partition_index: Annotated[int, F("int32")] = 0
    low_watermark: Annotated[int, F("int64")] = 0  # -1 with an error
    error_code: Annotated[int, F("int16")] = 0


class DeleteRecordsTopicResult(Message):
    """The partitions of one topic."""

    name: Annotated[str, F("string")] = ""
    partitions: Annotated[list[DeleteRecordsPartitionResult], F("[]struct")] = []


class DeleteRecordsResponse(Message):
    """One answer per partition."""

    API_KEY = DeleteRecordsRequest.API_KEY
    VERSIONS = "0-2"
    FLEXIBLE = "2+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    topics: Annotated[list[DeleteRecordsTopicResult], F("[]struct")] = []
