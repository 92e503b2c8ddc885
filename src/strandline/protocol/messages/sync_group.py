"""Hands in (the leader) and takes out (everybody) the assignment of a generation.

Source: KIP-62, KIP-345 (version 3), KIP-559 (version 5)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class SyncGroupRequestAssignment(Message):
    """The leader's assignment for one member."""

    member_id: Annotated[str, F("string")] = ""
    assignment: Annotated[bytes, F("bytes")] = b""  # opaque to the broker


class SyncGroupRequest(Message):
    """Every member sends it; only the leader fills `assignments`."""

    API_KEY = 14
    VERSIONS = "0-5"
    FLEXIBLE = "4+"

    group_id: Annotated[str, F("string")] = ""
    generation_id: Annotated[int, F("int32")] = 0
    member_id: Annotated[str, F("string")] = ""
    group_instance_id: Annotated[str | None, F("string", "3+", nullable="3+")] = None
    protocol_type: Annotated[str | None, F("string", "5+", nullable="5+")] = None
    protocol_name: Annotated[str | None, F("string", "5+", nullable="5+")] = None
    assignments: Annotated[list[SyncGroupRequestAssignment], F("[]struct")] = []


class SyncGroupResponse(Message):
    """The assignment of this member."""

    API_KEY = SyncGroupRequest.API_KEY
    VERSIONS = "0-5"
    FLEXIBLE = "4+"

    throttle_time_ms: Annotated[int, F("int32", "1+")] = 0
    error_code: Annotated[int, F("int16")] = 0
    protocol_type: Annotated[str | None, F("string", "5+", nullable="5+")] = None
    protocol_name: Annotated[str | None, F("string", "5+", nullable="5+")] = None
    assignment: Annotated[bytes, F("bytes")] = b""
