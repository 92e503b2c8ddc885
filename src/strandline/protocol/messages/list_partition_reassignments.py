"""Lists the partitions whose replicas move.

Source: KIP-455."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class ListPartitionReassignmentsTopics(Message):
    """Partitions of one topic to look at."""

    name: Annotated[str, F("string")] = ""
    partition_indexes: Annotated[list[int], F("[]int32")] = []


class ListPartitionReassignmentsRequest(Message):
    """The partitions to look at."""

    API_KEY = 46
    VERSIONS = "0"
    FLEXIBLE = "0+"

    timeout_ms: Annotated[int, F("int32")] = 60_000
    # null: all
    topics: Annotated[
        list[ListPartitionReassignmentsTopics] | None, F("[]struct", nullable="0+")
    ] = None


class OngoingPartitionReassignment(Message):
    """A partition that moves: its replicas now, those being added, and those being removed."""

    partition_index: Annotated[int, F("int32")] = 0
    replicas: Annotated[list[int], F("[]int32")] = []
    adding_replicas: Annotated[list[int], F("[]int32")] = []
    removing_replicas: Annotated[list[int], F("[]int32")] = []


class OngoingTopicReassignment(Message):
    """The partitions of one topic that move."""

    name: Annotated[str, F("string")] = ""
    partitions: Annotated[list[OngoingPartitionReassignment], F("[]struct")] = []


class ListPartitionReassignmentsResponse(Message):
    """The requested partitions that move."""

    API_KEY = ListPartitionReassignmentsRequest.API_KEY
    VERSIONS = "0"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = ""
    topics: Annotated[list[OngoingTopicReassignment], F("[]struct")] = []
