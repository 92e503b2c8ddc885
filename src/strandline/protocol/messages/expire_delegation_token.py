"""Sets when a delegation token ends.

Source: KIP-48."""

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class ExpireDelegationTokenRequest(Message):
    """The token, and in how long it ends; below 0: at once."""

    API_KEY = 40
    VERSIONS = "1-2"
    FLEXIBLE = "2+"

    hmac: Annotated[bytes, F("bytes")] = b""
    expiry_time_period_ms: Annotated[int, F("int64")] = 0


class ExpireDelegationTokenResponse(Message):
    """When the token ends now."""

    API_KEY = ExpireDelegationTokenRequest.API_KEY
    VERSIONS = "1-2"
    FLEXIBLE = "2+"

    error_code: Annotated[int, F("int16")] = 0
    expiry_timestamp_ms: Annotated[int, F("int64")] = 0
    throttle_time_ms: Annotated[int, F("int32")] = 0
