"""The groups that this broker coordinates.

Source: KIP-518 (states, version 4), KIP-848 (types, version 5)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class ListGroupsRequest(Message):
    """Asks for all groups, or for those in some states or of some types."""

    API_KEY = 16
    VERSIONS = "0-5"
    FLEXIBLE = "3+"

    states_filter: Annotated[list[str], F("[]string", "4+")] = []  # empty: all
    # empty: all; "classic", "consumer", "share"
    types_filter: Annotated[list[str], F("[]string", "5+")] = []


class ListedGroup(Message):
    """A group, briefly."""

    group_id: Annotated[str, F("string")] = ""
    protocol_type: Annotated[str, F("string")] = ""
    group_state: Annotated[str, F("string", "4+")] = ""
    group_type: Annotated[str, F("string", "5+")] = ""


class ListGroupsResponse(Message):
    """The groups found."""

    API_KEY = ListGroupsRequest.API_KEY
    VERSIONS = "0-5"
    FLEXIBLE = "3+"

    throttle_time_ms: Annotated[int, F("int32", "1+")] = 0
    error_code: Annotated[int, F("int16")] = 0
    groups: Annotated[list[ListedGroup], F("[]struct")] = []
