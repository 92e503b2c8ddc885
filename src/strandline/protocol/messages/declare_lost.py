"""Gives up replicas that are gone for good, so that a partition goes on with what is left: an API
of Strandline's own.

Source: docs/decisions/0027-declared-losses.md."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class ShownReplicaLog(Message):
    """The log of a broker that is left, as it was shown to whoever decides."""

    broker_id: Annotated[int, F("int32")] = 0
    last_epoch: Annotated[int, F("int32")] = -1
    last_index: Annotated[int, F("int64")] = -1
    committed_offset: Annotated[int, F("int64")] = -1
    log_end_offset: Annotated[int, F("int64")] = -1


class DeclareLostRequest(Message):
    """Give these brokers' replicas of a partition up. With `validate_only` it is said what that
    would do, and `logs` need not be known."""

    API_KEY = 20_014
    VERSIONS = "0"
    FLEXIBLE = "0+"

    topic: Annotated[str, F("string")] = ""
    partition: Annotated[int, F("int32")] = 0
    grant: Annotated[int, F("int32")] = 0  # the last that was begun, as that person knows
    broker_ids: Annotated[list[int], F("[]int32")] = []
    logs: Annotated[list[ShownReplicaLog], F("[]struct")] = []
    by: Annotated[str, F("string")] = ""  # who says so
    validate_only: Annotated[bool, F("bool")] = False


class DeclareLostResponse(Message):
    """The entries given up, or to be given up."""

    API_KEY = DeclareLostRequest.API_KEY
    VERSIONS = "0"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = None
    grant: Annotated[int, F("int32")] = 0  # by which it goes on
    leader_id: Annotated[int, F("int32")] = -1  # whose log it goes on with
    committed_offset: Annotated[int, F("int64")] = -1  # at risk from here
    log_end_offset: Annotated[int, F("int64")] = -1  # where that log ends
    logs: Annotated[list[ShownReplicaLog], F("[]struct")] = []  # of all who are left
