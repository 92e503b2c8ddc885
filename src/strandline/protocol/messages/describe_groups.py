"""State and members of classic groups.

Source: KIP-345, KIP-430, KIP-1043 (GROUP_ID_NOT_FOUND with a message, version 6)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class DescribeGroupsRequest(Message):
    """Groups to describe."""

    API_KEY = 15
    VERSIONS = "0-6"
    FLEXIBLE = "5+"

    groups: Annotated[list[str], F("[]string")] = []
    include_authorized_operations: Annotated[bool, F("bool", "3+")] = False


class DescribedGroupMember(Message):
    """A member with its opaque subscription and assignment."""

    member_id: Annotated[str, F("string")] = ""
    group_instance_id: Annotated[str | None, F("string", "4+", nullable="4+")] = None
    client_id: Annotated[str, F("string")] = ""
    client_host: Annotated[str, F("string")] = ""
    member_metadata: Annotated[bytes, F("bytes")] = b""
    member_assignment: Annotated[bytes, F("bytes")] = b""


class DescribedGroup(Message):
    """A group, or why it cannot be described."""

    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", "6+", nullable="6+")] = None
    group_id: Annotated[str, F("string")] = ""
    group_state: Annotated[str, F("string")] = ""
    protocol_type: Annotated[str, F("string")] = ""
    protocol_data: Annotated[str, F("string")] = ""  # the protocol chosen
    members: Annotated[list[DescribedGroupMember], F("[]struct")] = []
    # bit set; this value: not asked for
    authorized_operations: Annotated[int, F("int32", "3+")] = -(2**31)


class DescribeGroupsResponse(Message):
    """One answer per group."""

    API_KEY = DescribeGroupsRequest.API_KEY
    VERSIONS = "0-6"
    FLEXIBLE = "5+"

    throttle_time_ms: Annotated[int, F("int32", "1+")] = 0
    groups: Annotated[list[DescribedGroup], F("[]struct")] = []
