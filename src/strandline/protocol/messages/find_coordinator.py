"""Which broker coordinates a group or a transactional id.

Source: KIP-98, KIP-699 (several keys, version 4), KIP-932 (share groups, version 6)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class FindCoordinatorRequest(Message):
    """Asks for one key up to version 3, for several after it."""

    API_KEY = 10
    VERSIONS = "0-6"
    FLEXIBLE = "3+"

    key: Annotated[str, F("string", "0-3")] = ""
    key_type: Annotated[int, F("int8", "1+")] = 0  # 0 group, 1 transactional id, 2 share group
    coordinator_keys: Annotated[list[str], F("[]string", "4+")] = []


class Coordinator(Message):
    """The coordinator of one key, or why there is none."""

    key: Annotated[str, F("string", "4+")] = ""
    node_id: Annotated[int, F("int32", "4+")] = 0
    host: Annotated[str, F("string", "4+")] = ""
    port: Annotated[int, F("int32", "4+")] = 0
    error_code: Annotated[int, F("int16", "4+")] = 0
    error_message: Annotated[str | None, F("string", "4+", nullable="4+")] = ""


class FindCoordinatorResponse(Message):
    """One broker up to version 3, a list after it."""

    API_KEY = FindCoordinatorRequest.API_KEY
    VERSIONS = "0-6"
    FLEXIBLE = "3+"

    throttle_time_ms: Annotated[int, F("int32", "1+")] = 0
    error_code: Annotated[int, F("int16", "0-3")] = 0
    error_message: Annotated[str | None, F("string", "1-3", nullable="1-3")] = ""
    node_id: Annotated[int, F("int32", "0-3")] = 0
    host: Annotated[str, F("string", "0-3")] = ""
    port: Annotated[int, F("int32", "0-3")] = 0
    coordinators: Annotated[list[Coordinator], F("[]struct", "4+")] = []
