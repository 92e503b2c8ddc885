"""Lists the quotas of clients.

Source: KIP-546."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class ComponentData(Message):
    """A condition on one kind of entity: user, client-id or ip."""

    entity_type: Annotated[str, F("string")] = ""
    match_type: Annotated[int, F("int8")] = 0  # 0: this name, 1: the default, 2: any name
    match: Annotated[str | None, F("string", nullable="0+")] = ""


class DescribeClientQuotasRequest(Message):
    """Conditions, all of which must hold."""

    API_KEY = 48
    VERSIONS = "0-1"
    FLEXIBLE = "1+"

    components: Annotated[list[ComponentData], F("[]struct")] = []
    strict: Annotated[bool, F("bool")] = False  # no entity of another kind


class EntityData(Message):
    """One kind of entity and its name; null: the default."""

    entity_type: Annotated[str, F("string")] = ""
    entity_name: Annotated[str | None, F("string", nullable="0+")] = ""


class ValueData(Message):
    """A quota."""

    key: Annotated[str, F("string")] = ""
    value: Annotated[float, F("float64")] = 0.0


class EntryData(Message):
    """The quotas of one entity."""

    entity: Annotated[list[EntityData], F("[]struct")] = []
    values: Annotated[list[ValueData], F("[]struct")] = []


class DescribeClientQuotasResponse(Message):
    """The quotas that fit."""

    API_KEY = DescribeClientQuotasRequest.API_KEY
    VERSIONS = "0-1"
    FLEXIBLE = "1+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = ""
    entries: Annotated[list[EntryData] | None, F("[]struct", nullable="0+")] = []
