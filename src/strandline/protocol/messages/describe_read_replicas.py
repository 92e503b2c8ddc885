"""How far copies of another cluster's topics are: an API of Strandline's own.

Source: decision 0061."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class DescribeReadReplicasRequest(Message):
    """Asks a broker about the copies of these topics that it has, or about all that it has."""

    API_KEY = 20_020
    VERSIONS = "0"
    FLEXIBLE = "0+"

    topics: Annotated[list[str] | None, F("[]string", nullable="0+")] = None


class CopiedPartition(Message):
    """One partition, as this broker has it; -1 for what is not known."""

    topic: Annotated[str, F("string")] = ""
    partition: Annotated[int, F("int32")] = 0
    is_leader: Annotated[bool, F("bool")] = False
    # Where the source is: URL#cluster id/topic, and its topic id.
    source: Annotated[str, F("string")] = ""
    # loading, ready, too stale, source deleted.
    state: Annotated[str, F("string")] = ""
    # Why the last look at the bucket failed; empty if it did not.
    failure: Annotated[str, F("string")] = ""
    # The export that is served.
    export: Annotated[str, F("string")] = ""
    log_start_offset: Annotated[int, F("int64")] = -1
    high_watermark: Annotated[int, F("int64")] = -1
    # Of the source, when the export was written.
    source_high_watermark: Annotated[int, F("int64")] = -1
    staleness_ms: Annotated[int, F("int64")] = -1


class DescribeReadReplicasResponse(Message):
    """By topic and partition; of other topics there is nothing to tell."""

    API_KEY = DescribeReadReplicasRequest.API_KEY
    VERSIONS = "0"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    partitions: Annotated[list[CopiedPartition], F("[]struct")] = []
