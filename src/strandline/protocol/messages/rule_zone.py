"""A person says what is to be thought of a zone or region: an API of Strandline's own.

Source: docs/decisions/0018-outages.md."""

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class RuleZoneRequest(Message):
    """One zone or region."""

    API_KEY = 20_009
    VERSIONS = "0"
    FLEXIBLE = "0+"

    region: Annotated[str, F("string")] = ""
    zone: Annotated[str, F("string")] = ""  # empty: the region
    ruling: Annotated[str, F("string")] = ""  # hold, release, lost
    for_ms: Annotated[int, F("int64")] = -1  # how long it holds; -1: without an end


class RuleZoneResponse(Message):
    """The current state."""

    API_KEY = RuleZoneRequest.API_KEY
    VERSIONS = "0"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = None
    is_down: Annotated[bool, F("bool")] = False
    ruling: Annotated[str, F("string")] = ""
    ruling_until_ms: Annotated[int, F("int64")] = -1
