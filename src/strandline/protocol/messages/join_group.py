"""Joins a classic consumer group; answered when all members have joined.

Source: KIP-62, KIP-345 (static members, version 5), KIP-394 (member id first, version 4), KIP-559
        (protocol type, version 7), KIP-800 (reason, version 8), KIP-814 (skip assignment, version
        9)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class JoinGroupRequestProtocol(Message):
    """A way of assigning that the member knows, the preferred one first."""

    name: Annotated[str, F("string")] = ""
    metadata: Annotated[bytes, F("bytes")] = b""  # a subscription; opaque to the broker


class JoinGroupRequest(Message):
    """Asks to become or to stay a member."""

    API_KEY = 11
    VERSIONS = "0-9"
    FLEXIBLE = "6+"

    group_id: Annotated[str, F("string")] = ""
    # without a heartbeat for so long, the member is out
    session_timeout_ms: Annotated[int, F("int32")] = 0
    # how long the coordinator waits for all members
    rebalance_timeout_ms: Annotated[int, F("int32", "1+")] = -1
    member_id: Annotated[str, F("string")] = ""  # empty: a new member
    # set by static members
    group_instance_id: Annotated[str | None, F("string", "5+", nullable="5+")] = None
    # "consumer" for consumers; the broker compares, no more
    protocol_type: Annotated[str, F("string")] = ""
    protocols: Annotated[list[JoinGroupRequestProtocol], F("[]struct")] = []
    reason: Annotated[str | None, F("string", "8+", nullable="8+")] = None


class JoinGroupResponseMember(Message):
    """A member, for the leader, which assigns partitions."""

    member_id: Annotated[str, F("string")] = ""
    group_instance_id: Annotated[str | None, F("string", "5+", nullable="5+")] = None
    metadata: Annotated[bytes, F("bytes")] = b""  # its subscription for the protocol chosen


class JoinGroupResponse(Message):
    """The new generation; only its leader gets the members."""

    API_KEY = JoinGroupRequest.API_KEY
    VERSIONS = "0-9"
    FLEXIBLE = "6+"

    throttle_time_ms: Annotated[int, F("int32", "2+")] = 0
    error_code: Annotated[int, F("int16")] = 0
    generation_id: Annotated[int, F("int32")] = -1
    protocol_type: Annotated[str | None, F("string", "7+", nullable="7+")] = None
    protocol_name: Annotated[str | None, F("string", nullable="7+")] = ""
    leader: Annotated[str, F("string")] = ""  # the member id of the leader
    # a static leader is back: nothing to assign
    skip_assignment: Annotated[bool, F("bool", "9+")] = False
    member_id: Annotated[str, F("string")] = ""
    members: Annotated[list[JoinGroupResponseMember], F("[]struct")] = []
