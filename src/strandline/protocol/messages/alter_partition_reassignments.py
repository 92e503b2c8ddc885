"""Moves replicas of partitions to other brokers, or stops that.

Source: KIP-455; KIP-860 (version 1: whether the number of replicas may change)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class ReassignablePartition(Message):
    """A partition and the brokers that are to hold it; the first is to lead."""

    partition_index: Annotated[int, F("int32")] = 0
    replicas: Annotated[list[int] | None, F("[]int32", nullable="0+")] = None  # null: cancel


class ReassignableTopic(Message):
    """The partitions of one topic."""

    name: Annotated[str, F("string")] = ""
    partitions: Annotated[list[ReassignablePartition], F("[]struct")] = []


class AlterPartitionReassignmentsRequest(Message):
    """Partitions to move."""

    API_KEY = 45
    VERSIONS = "0-1"
    FLEXIBLE = "0+"

    timeout_ms: Annotated[int, F("int32")] = 60_000
    allow_replication_factor_change: Annotated[bool, F("bool", "1+")] = True
    topics: Annotated[list[ReassignableTopic], F("[]struct")] = []


class ReassignablePartitionResponse(Message):
    """The result for one partition."""

    partition_index: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = ""


class ReassignableTopicResponse(Message):
    """The partitions of one topic."""

    name: Annotated[str, F("string")] = ""
    partitions: Annotated[list[ReassignablePartitionResponse], F("[]struct")] = []


class AlterPartitionReassignmentsResponse(Message):
    """One answer per partition; they move afterwards."""

    API_KEY = AlterPartitionReassignmentsRequest.API_KEY
    VERSIONS = "0-1"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    allow_replication_factor_change: Annotated[bool, F("bool", "1+")] = True
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = ""
    responses: Annotated[list[ReassignableTopicResponse], F("[]struct")] = []
