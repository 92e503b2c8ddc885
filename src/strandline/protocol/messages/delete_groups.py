"""Deletes groups that have no members, with their offsets.

Source: KIP-229; Kafka 4.4 for the message in version 3."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class DeleteGroupsRequest(Message):
    """Groups to delete."""

    API_KEY = 42
    VERSIONS = "0-3"
    FLEXIBLE = "2+"

    groups_names: Annotated[list[str], F("[]string")] = []


class DeletableGroupResult(Message):
    """The result for one group."""

    group_id: Annotated[str, F("string")] = ""
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", "3+", nullable="3+")] = None


class DeleteGroupsResponse(Message):
    """One answer per group."""

    API_KEY = DeleteGroupsRequest.API_KEY
    VERSIONS = "0-3"
    FLEXIBLE = "2+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    results: Annotated[list[DeletableGroupResult], F("[]struct")] = []
