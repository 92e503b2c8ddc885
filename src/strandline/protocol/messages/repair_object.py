"""Has the leader of a partition put an object into a bucket again: an API of Strandline's own.

Source: docs/decisions/0068-which-bucket.md."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from strandline.protocol.messages.describe_tier import NO_TOPIC_ID
from strandline.protocol.table import F, Message


class RepairObjectRequest(Message):
    """One live object of a partition that this broker leads."""

    API_KEY = 20_023
    VERSIONS = "0"
    FLEXIBLE = "0+"

    topic_id: Annotated[UUID, F("uuid")] = NO_TOPIC_ID
    partition: Annotated[int, F("int32")] = -1
    bucket: Annotated[str, F("string")] = ""
    name: Annotated[str, F("string")] = ""


class RepairObjectResponse(Message):
    """How it is now."""

    API_KEY = RepairObjectRequest.API_KEY
    VERSIONS = "0"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = None
    # Whether it was put again.
    is_put: Annotated[bool, F("bool")] = False
    # sound, missing, damaged, or unreadable: the store gave no usable answer.
    verdict: Annotated[str, F("string")] = ""
    reason: Annotated[str, F("string")] = ""
