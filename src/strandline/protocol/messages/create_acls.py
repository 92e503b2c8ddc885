"""Adds access rules.

Source: KIP-140, KIP-290 (patterns)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class AclCreation(Message):
    """A rule to add."""

    resource_type: Annotated[int, F("int8")] = 0
    resource_name: Annotated[str, F("string")] = ""
    resource_pattern_type: Annotated[int, F("int8", "1+")] = 3
    principal: Annotated[str, F("string")] = ""
    host: Annotated[str, F("string")] = ""
    operation: Annotated[int, F("int8")] = 0
    permission_type: Annotated[int, F("int8")] = 0


class CreateAclsRequest(Message):
    """Rules to add, each for itself."""

    API_KEY = 30
    VERSIONS = "1-3"
    FLEXIBLE = "2+"

    creations: Annotated[list[AclCreation], F("[]struct")] = []


class AclCreationResult(Message):
    """The result for one rule."""

    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = ""


class CreateAclsResponse(Message):
    """One answer for each rule, in the request's order."""

    API_KEY = CreateAclsRequest.API_KEY
    VERSIONS = "1-3"
    FLEXIBLE = "2+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    results: Annotated[list[AclCreationResult], F("[]struct")] = []
