"""Deletes topics, by name or, from version 6, by id.

Source: KIP-516, KIP-599 (error message, version 5)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from strandline.protocol.table import NO_ID, F, Message


class DeleteTopicState(Message):
    """A topic by name, or by id with a null name."""

    name: Annotated[str | None, F("string", "6+", nullable="6+")] = None
    topic_id: Annotated[UUID, F("uuid", "6+")] = NO_ID


class DeleteTopicsRequest(Message):
    """Topics to delete: names up to version 5, states after it."""

    API_KEY = 20
    VERSIONS = "1-6"
    FLEXIBLE = "4+"

    topics: Annotated[list[DeleteTopicState], F("[]struct", "6+")] = []
    topic_names: Annotated[list[str], F("[]string", "0-5")] = []
    timeout_ms: Annotated[int, F("int32")] = 0


class DeletableTopicResult(Message):
    """The result for one topic."""

    name: Annotated[str | None, F("string", nullable="6+")] = ""
    topic_id: Annotated[UUID, F("uuid", "6+")] = NO_ID
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", "5+", nullable="5+")] = None


class DeleteTopicsResponse(Message):
    """One answer per topic."""

    API_KEY = DeleteTopicsRequest.API_KEY
    VERSIONS = "1-6"
    FLEXIBLE = "4+"

    throttle_time_ms: Annotated[int, F("int32", "1+")] = 0
    responses: Annotated[list[DeletableTopicResult], F("[]struct")] = []
