"""Makes a delegation token.

Source: KIP-48; KIP-373 (for another user, version 3)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class CreatableRenewers(Message):
    """A user that may extend the token's life."""

    principal_type: Annotated[str, F("string")] = ""
    principal_name: Annotated[str, F("string")] = ""


class CreateDelegationTokenRequest(Message):
    """Asks for a token of the user of this connection, or of another one."""

    API_KEY = 38
    VERSIONS = "1-3"
    FLEXIBLE = "2+"

    owner_principal_type: Annotated[str | None, F("string", "3+", nullable="3+")] = ""
    owner_principal_name: Annotated[str | None, F("string", "3+", nullable="3+")] = ""
    renewers: Annotated[list[CreatableRenewers], F("[]struct")] = []
    max_lifetime_ms: Annotated[int, F("int64")] = 0  # -1: as the broker has it


class CreateDelegationTokenResponse(Message):
    """The token."""

    API_KEY = CreateDelegationTokenRequest.API_KEY
    VERSIONS = "1-3"
    FLEXIBLE = "2+"

    error_code: Annotated[int, F("int16")] = 0
    principal_type: Annotated[str, F("string")] = ""
    principal_name: Annotated[str, F("string")] = ""
    token_requester_principal_type: Annotated[str, F("string", "3+")] = ""
    token_requester_principal_name: Annotated[str, F("string", "3+")] = ""
    issue_timestamp_ms: Annotated[int, F("int64")] = 0
    expiry_timestamp_ms: Annotated[int, F("int64")] = 0
    max_timestamp_ms: Annotated[int, F("int64")] = 0
    token_id: Annotated[str, F("string")] = ""
    hmac: Annotated[bytes, F("bytes")] = b""
    throttle_time_ms: Annotated[int, F("int32")] = 0
