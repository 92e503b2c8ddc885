"""Data directories of a broker: what lies in them, and how much room there is.

Source: KIP-113; KIP-827 (total and usable bytes, version 4); KIP-1066 (cordoned, version 5)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class DescribableLogDirTopic(Message):
    """Partitions of a topic that are asked about."""

    topic: Annotated[str, F("string")] = ""
    partitions: Annotated[list[int], F("[]int32")] = []


class DescribeLogDirsRequest(Message):
    """Asks one broker."""

    API_KEY = 35
    VERSIONS = "1-5"
    FLEXIBLE = "2+"

    topics: Annotated[
        list[DescribableLogDirTopic] | None, F("[]struct", nullable="0+")
    ] = []  # null: all


class DescribeLogDirsPartition(Message):
    """One log."""

    partition_index: Annotated[int, F("int32")] = 0
    partition_size: Annotated[int, F("int64")] = 0  # bytes of its segments
    offset_lag: Annotated[int, F("int64")] = 0  # what it lacks up to the high watermark
    is_future_key: Annotated[bool, F("bool")] = False  # on its way from another directory


class DescribeLogDirsTopic(Message):
    """Logs of one topic."""

    name: Annotated[str, F("string")] = ""
    partitions: Annotated[list[DescribeLogDirsPartition], F("[]struct")] = []


class DescribeLogDirsResult(Message):
    """One directory."""

    error_code: Annotated[int, F("int16")] = 0
    log_dir: Annotated[str, F("string")] = ""
    topics: Annotated[list[DescribeLogDirsTopic], F("[]struct")] = []
    total_bytes: Annotated[int, F("int64", "4+")] = -1  # of its file system
    usable_bytes: Annotated[int, F("int64", "4+")] = -1
    is_cordoned: Annotated[bool, F("bool", "5+")] = False  # takes no new logs


class DescribeLogDirsResponse(Message):
    """The directories of the broker."""

    API_KEY = DescribeLogDirsRequest.API_KEY
    VERSIONS = "1-5"
    FLEXIBLE = "2+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16", "3+")] = 0
    results: Annotated[list[DescribeLogDirsResult], F("[]struct")] = []
