"""Extends the life of a delegation token.

Source: KIP-48."""

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class RenewDelegationTokenRequest(Message):
    """The token and for how long."""

    API_KEY = 39
    VERSIONS = "1-2"
    FLEXIBLE = "2+"

    hmac: Annotated[bytes, F("bytes")] = b""
    renew_period_ms: Annotated[int, F("int64")] = 0


class RenewDelegationTokenResponse(Message):
    """When the token ends now."""

    API_KEY = RenewDelegationTokenRequest.API_KEY
    VERSIONS = "1-2"
    FLEXIBLE = "2+"

    error_code: Annotated[int, F("int16")] = 0
    expiry_timestamp_ms: Annotated[int, F("int64")] = 0
    throttle_time_ms: Annotated[int, F("int32")] = 0
