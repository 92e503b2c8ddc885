"""Sets and removes quotas of clients.

Source: KIP-546."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class EntityData(Message):
    """One kind of entity and its name; null: the default."""

    entity_type: Annotated[str, F("string")] = ""
    entity_name: Annotated[str | None, F("string", nullable="0+")] = ""


class OpData(Message):
    """A quota to set or to remove."""

    key: Annotated[str, F("string")] = ""
    value: Annotated[float, F("float64")] = 0.0
    remove: Annotated[bool, F("bool")] = False


class AlterClientQuotasEntry(Message):
    """Changes of one entity."""

    entity: Annotated[list[EntityData], F("[]struct")] = []
    ops: Annotated[list[OpData], F("[]struct")] = []


class AlterClientQuotasRequest(Message):
    """Changes, each entity for itself."""

    API_KEY = 49
    VERSIONS = "0-1"
    FLEXIBLE = "1+"

    entries: Annotated[list[AlterClientQuotasEntry], F("[]struct")] = []
    validate_only: Annotated[bool, F("bool")] = False


class AlteredEntity(Message):
    """The result for one entity."""

    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = ""
    entity: Annotated[list[EntityData], F("[]struct")] = []


class AlterClientQuotasResponse(Message):
    """One result for each entry."""

    API_KEY = AlterClientQuotasRequest.API_KEY
    VERSIONS = "0-1"
    FLEXIBLE = "1+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    entries: Annotated[list[AlteredEntity], F("[]struct")] = []
