"""Lists delegation tokens.

Source: KIP-48; KIP-373 (for another user, version 3)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class DescribeDelegationTokenOwner(Message):
    """A user."""

    principal_type: Annotated[str, F("string")] = ""
    principal_name: Annotated[str, F("string")] = ""


class DescribeDelegationTokenRequest(Message):
    """Asks for the tokens of some users."""

    API_KEY = 41
    VERSIONS = "1-3"
    FLEXIBLE = "2+"

    # null: of all
    owners: Annotated[list[DescribeDelegationTokenOwner] | None, F("[]struct", nullable="0+")] = []


class DescribedDelegationTokenRenewer(Message):
    """A user that may extend a token's life."""

    principal_type: Annotated[str, F("string")] = ""
    principal_name: Annotated[str, F("string")] = ""


class DescribedDelegationToken(Message):
    """One token."""

    principal_type: Annotated[str, F("string")] = ""
    principal_name: Annotated[str, F("string")] = ""
    token_requester_principal_type: Annotated[str, F("string", "3+")] = ""
    token_requester_principal_name: Annotated[str, F("string", "3+")] = ""
    issue_timestamp: Annotated[int, F("int64")] = 0
    expiry_timestamp: Annotated[int, F("int64")] = 0
    max_timestamp: Annotated[int, F("int64")] = 0
    token_id: Annotated[str, F("string")] = ""
    hmac: Annotated[bytes, F("bytes")] = b""
    renewers: Annotated[list[DescribedDelegationTokenRenewer], F("[]struct")] = []


class DescribeDelegationTokenResponse(Message):
    """The tokens."""

    API_KEY = DescribeDelegationTokenRequest.API_KEY
    VERSIONS = "1-3"
    FLEXIBLE = "2+"

    error_code: Annotated[int, F("int16")] = 0
    tokens: Annotated[list[DescribedDelegationToken], F("[]struct")] = []
    throttle_time_ms: Annotated[int, F("int32")] = 0
