"""Sets and removes the passwords of users, salted by the client.

Source: KIP-554."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class ScramCredentialDeletion(Message):
    """A password to remove."""

    name: Annotated[str, F("string")] = ""
    mechanism: Annotated[int, F("int8")] = 0


class ScramCredentialUpsertion(Message):
    """A password to set."""

    name: Annotated[str, F("string")] = ""
    mechanism: Annotated[int, F("int8")] = 0
    iterations: Annotated[int, F("int32")] = 0
    salt: Annotated[bytes, F("bytes")] = b""
    salted_password: Annotated[bytes, F("bytes")] = b""


class AlterUserScramCredentialsRequest(Message):
    """Changes of some users, each user for itself."""

    API_KEY = 51
    VERSIONS = "0"
    FLEXIBLE = "0+"

    deletions: Annotated[list[ScramCredentialDeletion], F("[]struct")] = []
    upsertions: Annotated[list[ScramCredentialUpsertion], F("[]struct")] = []


class AlterUserScramCredentialsResult(Message):
    """The result for one user."""

    user: Annotated[str, F("string")] = ""
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = ""


class AlterUserScramCredentialsResponse(Message):
    """One result for each user."""

    API_KEY = AlterUserScramCredentialsRequest.API_KEY
    VERSIONS = "0"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    results: Annotated[list[AlterUserScramCredentialsResult], F("[]struct")] = []
