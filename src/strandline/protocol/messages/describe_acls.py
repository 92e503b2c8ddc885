"""Lists access rules.

Source: KIP-140, KIP-290 (patterns)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class DescribeAclsRequest(Message):
    """A filter; null: whatever."""

    API_KEY = 29
    VERSIONS = "1-3"
    FLEXIBLE = "2+"

    resource_type_filter: Annotated[int, F("int8")] = 0
    resource_name_filter: Annotated[str | None, F("string", nullable="0+")] = ""
    pattern_type_filter: Annotated[int, F("int8", "1+")] = 3
    principal_filter: Annotated[str | None, F("string", nullable="0+")] = ""
    host_filter: Annotated[str | None, F("string", nullable="0+")] = ""
    operation: Annotated[int, F("int8")] = 0
    permission_type: Annotated[int, F("int8")] = 0


class AclDescription(Message):
    """One rule: who may, or may not, do what from where."""

    principal: Annotated[str, F("string")] = ""
    host: Annotated[str, F("string")] = ""
    operation: Annotated[int, F("int8")] = 0
    permission_type: Annotated[int, F("int8")] = 0


class DescribeAclsResource(Message):
    """The rules of one resource."""

    resource_type: Annotated[int, F("int8")] = 0
    resource_name: Annotated[str, F("string")] = ""
    pattern_type: Annotated[int, F("int8", "1+")] = 3
    acls: Annotated[list[AclDescription], F("[]struct")] = []


class DescribeAclsResponse(Message):
    """The rules that fit the filter."""

    API_KEY = DescribeAclsRequest.API_KEY
    VERSIONS = "1-3"
    FLEXIBLE = "2+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = ""
    resources: Annotated[list[DescribeAclsResource], F("[]struct")] = []
