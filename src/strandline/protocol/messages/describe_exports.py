"""What buckets say that they have of partitions: an API of Strandline's own.

Source: decisions 0027 and 0061."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class ExportsTopic(Message):
    """A topic and some of its partitions."""

    name: Annotated[str, F("string")] = ""
    partition_indexes: Annotated[list[int], F("[]int32")] = []


class DescribeExportsRequest(Message):
    """Has any broker read the newest exports of these partitions, out of all of its buckets."""

    API_KEY = 20_019
    VERSIONS = "0"
    FLEXIBLE = "0+"

    topics: Annotated[list[ExportsTopic], F("[]struct")] = []
    timeout_ms: Annotated[int, F("int32")] = 0


class ExportedPartition(Message):
    """One partition in one bucket."""

    topic: Annotated[str, F("string")] = ""
    partition: Annotated[int, F("int32")] = 0
    bucket: Annotated[str, F("string")] = ""
    # Why the bucket does not say; empty if it does. An empty export: it has none.
    failure: Annotated[str, F("string")] = ""
    export: Annotated[str, F("string")] = ""
    # The bucket has the records of [start, end).
    start_offset: Annotated[int, F("int64")] = -1
    end_offset: Annotated[int, F("int64")] = -1
    # The partition's, when the export was written, and that time.
    high_watermark: Annotated[int, F("int64")] = -1
    written_ms: Annotated[int, F("int64")] = -1


class DescribeExportsResponse(Message):
    """In the order of the request, each with the buckets in that of the broker's file."""

    API_KEY = DescribeExportsRequest.API_KEY
    VERSIONS = "0"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    partitions: Annotated[list[ExportedPartition], F("[]struct")] = []
