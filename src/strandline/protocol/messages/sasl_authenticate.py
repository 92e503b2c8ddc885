"""Carries one message of the mechanism in each direction.

Source: KIP-152; KIP-368 (version 1: how long the session lasts)."""

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class SaslAuthenticateRequest(Message):
    """The client's message."""

    API_KEY = 36
    VERSIONS = "0-2"
    FLEXIBLE = "2+"

    auth_bytes: Annotated[bytes, F("bytes")] = b""


class SaslAuthenticateResponse(Message):
    """The answer to it."""

    API_KEY = SaslAuthenticateRequest.API_KEY
    VERSIONS = "0-2"
    FLEXIBLE = "2+"

    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = ""
    auth_bytes: Annotated[bytes, F("bytes")] = b""
    session_lifetime_ms: Annotated[int, F("int64", "1+")] = 0  # 0: no end
