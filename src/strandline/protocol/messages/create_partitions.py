"""Adds partitions to topics.

Source: KIP-195."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class CreatePartitionsAssignment(Message):
    """Which brokers hold one new partition; the first leads."""

    broker_ids: Annotated[list[int], F("[]int32")] = []


class CreatePartitionsTopic(Message):
    """A topic and how many partitions it is to have in the end."""

    name: Annotated[str, F("string")] = ""
    count: Annotated[int, F("int32")] = 0  # the new total
    # null: the cluster chooses
    assignments: Annotated[
        list[CreatePartitionsAssignment] | None, F("[]struct", nullable="0+")
    ] = []


class CreatePartitionsRequest(Message):
    """Topics to enlarge; with `validate_only` nothing happens."""

    API_KEY = 37
    VERSIONS = "0-3"
    FLEXIBLE = "2+"

    topics: Annotated[list[CreatePartitionsTopic], F("[]struct")] = []
    timeout_ms: Annotated[int, F("int32")] = 0
    validate_only: Annotated[bool, F("bool")] = False


class CreatePartitionsTopicResult(Message):
    """The result for one topic."""

    name: Annotated[str, F("string")] = ""
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = None


class CreatePartitionsResponse(Message):
    """One answer per topic."""

    API_KEY = CreatePartitionsRequest.API_KEY
    VERSIONS = "0-3"
    FLEXIBLE = "2+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    results: Annotated[list[CreatePartitionsTopicResult], F("[]struct")] = []
