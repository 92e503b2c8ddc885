"""Lists how users may log in with SCRAM.

Source: KIP-554."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class UserName(Message):
    """A user."""

    name: Annotated[str, F("string")] = ""


class DescribeUserScramCredentialsRequest(Message):
    """Asks about some users."""

    API_KEY = 50
    VERSIONS = "0"
    FLEXIBLE = "0+"

    users: Annotated[list[UserName] | None, F("[]struct", nullable="0+")] = []  # none: all


class CredentialInfo(Message):
    """A mechanism that a user has a password for."""

    mechanism: Annotated[int, F("int8")] = 0
    iterations: Annotated[int, F("int32")] = 0


class DescribeUserScramCredentialsResult(Message):
    """The result for one user."""

    user: Annotated[str, F("string")] = ""
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = ""
    credential_infos: Annotated[list[CredentialInfo], F("[]struct")] = []


class DescribeUserScramCredentialsResponse(Message):
    """One answer for each user."""

    API_KEY = DescribeUserScramCredentialsRequest.API_KEY
    VERSIONS = "0"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = ""
    results: Annotated[list[DescribeUserScramCredentialsResult], F("[]struct")] = []
