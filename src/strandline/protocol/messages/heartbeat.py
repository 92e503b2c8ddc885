"""Says that a member is alive, and learns whether the group rebalances.

Source: KIP-62, KIP-345 (version 3)."""

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class HeartbeatRequest(Message):
    """A sign of life from one member."""

    API_KEY = 12
    VERSIONS = "0-4"
    FLEXIBLE = "4+"

    group_id: Annotated[str, F("string")] = ""
    generation_id: Annotated[int, F("int32")] = 0
    member_id: Annotated[str, F("string")] = ""
    group_instance_id: Annotated[str | None, F("string", "3+", nullable="3+")] = None


class HeartbeatResponse(Message):
    """REBALANCE_IN_PROGRESS tells the member to join again."""

    API_KEY = HeartbeatRequest.API_KEY
    VERSIONS = "0-4"
    FLEXIBLE = "4+"

    throttle_time_ms: Annotated[int, F("int32", "1+")] = 0
    error_code: Annotated[int, F("int16")] = 0
