"""Leaves a group; from version 3 several members at once.

Source: KIP-345 (version 3), KIP-800 (reason, version 5)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class MemberIdentity(Message):
    """A member that leaves."""

    member_id: Annotated[str, F("string", "3+")] = ""
    group_instance_id: Annotated[str | None, F("string", "3+", nullable="3+")] = None
    reason: Annotated[str | None, F("string", "5+", nullable="5+")] = None


class LeaveGroupRequest(Message):
    """One member up to version 2, several after it."""

    API_KEY = 13
    VERSIONS = "0-5"
    FLEXIBLE = "4+"

    group_id: Annotated[str, F("string")] = ""
    member_id: Annotated[str, F("string", "0-2")] = ""
    members: Annotated[list[MemberIdentity], F("[]struct", "3+")] = []


class MemberResponse(Message):
    """The result for one member."""

    member_id: Annotated[str, F("string", "3+")] = ""
    group_instance_id: Annotated[str | None, F("string", "3+", nullable="3+")] = ""
    error_code: Annotated[int, F("int16", "3+")] = 0


class LeaveGroupResponse(Message):
    """One answer per member from version 3."""

    API_KEY = LeaveGroupRequest.API_KEY
    VERSIONS = "0-5"
    FLEXIBLE = "4+"

    throttle_time_ms: Annotated[int, F("int32", "1+")] = 0
    error_code: Annotated[int, F("int16")] = 0
    members: Annotated[list[MemberResponse], F("[]struct", "3+")] = []
