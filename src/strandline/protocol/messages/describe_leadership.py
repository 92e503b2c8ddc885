"""Which partitions a broker leads that another one should lead, and why it still does: an API of
Strandline's own.

Source: docs/decisions/0012-leaders.md."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class DescribeLeadershipRequest(Message):
    """Asks one broker about what it leads."""

    API_KEY = 20_003
    VERSIONS = "0"
    FLEXIBLE = "0+"


class LeaderWait(Message):
    """A partition that is led by the one that answers."""

    topic: Annotated[str, F("string")] = ""
    partition: Annotated[int, F("int32")] = 0
    preferred: Annotated[int, F("int32")] = 0  # the broker that should lead it
    code: Annotated[str, F("string")] = ""
    text: Annotated[str, F("string")] = ""


class DescribeLeadershipResponse(Message):
    """All of them, by topic and partition, up to a limit."""

    API_KEY = DescribeLeadershipRequest.API_KEY
    VERSIONS = "0"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    waits: Annotated[list[LeaderWait], F("[]struct")] = []
