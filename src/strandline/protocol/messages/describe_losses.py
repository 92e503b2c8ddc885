"""What was declared lost of a topic, ever: an API of Strandline's own.

Source: docs/decisions/0027-declared-losses.md."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class DescribeLossesRequest(Message):
    """Asks any broker about topics; about all where none is named."""

    API_KEY = 20_015
    VERSIONS = "0-1"
    FLEXIBLE = "0+"

    topics: Annotated[list[str], F("[]string")] = []


class DeclaredLoss(Message):
    """Replicas of a partition that were given up, and what was at risk then."""

    topic: Annotated[str, F("string")] = ""
    partition: Annotated[int, F("int32")] = 0
    grant: Annotated[int, F("int32")] = 0
    broker_ids: Annotated[list[int], F("[]int32")] = []
    survivors: Annotated[list[int], F("[]int32")] = []
    leader_id: Annotated[int, F("int32")] = -1
    committed_offset: Annotated[int, F("int64")] = -1  # at risk from here
    log_end_offset: Annotated[int, F("int64")] = -1  # below it records are kept
    by: Annotated[str, F("string")] = ""
    at_ms: Annotated[int, F("int64")] = 0
    # No log went on, but what these buckets had.
    buckets: Annotated[list[str], F("[]string", "1+")] = []


class DescribeLossesResponse(Message):
    """Of each partition in order."""

    API_KEY = DescribeLossesRequest.API_KEY
    VERSIONS = "0-1"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    # How much of the controller's log this broker has replayed: the larger knows more.
    cluster_version: Annotated[int, F("int64")] = -1
    losses: Annotated[list[DeclaredLoss], F("[]struct")] = []
