"""Removes access rules.

Source: KIP-140, KIP-290 (patterns)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class DeleteAclsFilter(Message):
    """Which rules; null: whatever."""

    resource_type_filter: Annotated[int, F("int8")] = 0
    resource_name_filter: Annotated[str | None, F("string", nullable="0+")] = ""
    pattern_type_filter: Annotated[int, F("int8", "1+")] = 3
    principal_filter: Annotated[str | None, F("string", nullable="0+")] = ""
    host_filter: Annotated[str | None, F("string", nullable="0+")] = ""
    operation: Annotated[int, F("int8")] = 0
    permission_type: Annotated[int, F("int8")] = 0


class DeleteAclsRequest(Message):
    """Rules to remove."""

    API_KEY = 31
    VERSIONS = "1-3"
    FLEXIBLE = "2+"

    filters: Annotated[list[DeleteAclsFilter], F("[]struct")] = []


class DeleteAclsMatchingAcl(Message):
    """A rule that fits a filter."""

    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = ""
    resource_type: Annotated[int, F("int8")] = 0
    resource_name: Annotated[str, F("string")] = ""
    pattern_type: Annotated[int, F("int8", "1+")] = 3
    principal: Annotated[str, F("string")] = ""
    host: Annotated[str, F("string")] = ""
    operation: Annotated[int, F("int8")] = 0
    permission_type: Annotated[int, F("int8")] = 0


class DeleteAclsFilterResult(Message):
    """The result for one filter."""

    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = ""
    matching_acls: Annotated[list[DeleteAclsMatchingAcl], F("[]struct")] = []


class DeleteAclsResponse(Message):
    """One answer for each filter, in the request's order."""

    API_KEY = DeleteAclsRequest.API_KEY
    VERSIONS = "1-3"
    FLEXIBLE = "2+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    filter_results: Annotated[list[DeleteAclsFilterResult], F("[]struct")] = []
