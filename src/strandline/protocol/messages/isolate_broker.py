"""Has a broker cut itself off for a while: an API of Strandline's own.

Version 1 ends that before its time. A broker that is cut off takes this request, and no other, as
the first of a connection, without ApiVersions before it.
Source: docs/decisions/0019-drills.md."""

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class IsolateBrokerRequest(Message):
    """Asks the broker that is to be cut off. It answers before that begins."""

    API_KEY = 20_007
    VERSIONS = "0-1"
    FLEXIBLE = "0+"

    delay_ms: Annotated[int, F("int32")] = 0  # until it begins
    duration_ms: Annotated[int, F("int32")] = 0  # until it ends by itself
    validate_only: Annotated[bool, F("bool")] = False
    ends: Annotated[bool, F("bool", "1+")] = False  # the drill ends now; all else is ignored


class IsolateBrokerResponse(Message):
    """Whether it does, or would."""

    API_KEY = IsolateBrokerRequest.API_KEY
    VERSIONS = "0-1"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = None
    was_in_drill: Annotated[bool, F("bool", "1+")] = False  # the answer to `ends`
