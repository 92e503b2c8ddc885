"""From where partitions are written whose leaders follow the writers, and why each leader is where
it is: an API of Strandline's own.

Source: docs/decisions/0014-following-the-writers.md."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class DescribeWritersRequest(Message):
    """Asks a leader."""

    API_KEY = 20_002
    VERSIONS = "0"
    FLEXIBLE = "0+"

    topic: Annotated[str, F("string")] = ""


class WriterRegion(Message):
    """The bytes that a region produced."""

    region: Annotated[str, F("string")] = ""  # empty: addresses in no network
    size_bytes: Annotated[int, F("int64")] = 0  # decayed: by half each quarter of the period


class WrittenPartition(Message):
    """A partition that the one who answers leads."""

    partition: Annotated[int, F("int32")] = 0
    code: Annotated[str, F("string")] = ""  # of placement.writers.CODES
    text: Annotated[str, F("string")] = ""
    regions: Annotated[list[WriterRegion], F("[]struct")] = []  # who produces most first


class DescribeWritersResponse(Message):
    """Those of the topic's partitions that are led here and follow the writers."""

    API_KEY = DescribeWritersRequest.API_KEY
    VERSIONS = "0"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    partitions: Annotated[list[WrittenPartition], F("[]struct")] = []
