"""Names the mechanism by which a client will authenticate.

Source: KIP-43; KIP-152 (version 1: the messages of the mechanism come in SaslAuthenticate)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class SaslHandshakeRequest(Message):
    """The mechanism that the client chose."""

    API_KEY = 17
    VERSIONS = "0-1"
    FLEXIBLE = "none"

    mechanism: Annotated[str, F("string")] = ""


class SaslHandshakeResponse(Message):
    """The mechanisms that the listener has."""

    API_KEY = SaslHandshakeRequest.API_KEY
    VERSIONS = "0-1"
    FLEXIBLE = "none"

    error_code: Annotated[int, F("int16")] = 0
    mechanisms: Annotated[list[str], F("[]string")] = []
