"""Moves logs between the data directories of one broker.

Source: KIP-113."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class AlterReplicaLogDirTopic(Message):
    """Partitions of one topic."""

    name: Annotated[str, F("string")] = ""
    partitions: Annotated[list[int], F("[]int32")] = []


class AlterReplicaLogDir(Message):
    """The logs that one directory shall hold."""

    path: Annotated[str, F("string")] = ""  # absolute
    topics: Annotated[list[AlterReplicaLogDirTopic], F("[]struct")] = []


class AlterReplicaLogDirsRequest(Message):
    """Asks the broker that has the logs."""

    API_KEY = 34
    VERSIONS = "1-2"
    FLEXIBLE = "2+"

    dirs: Annotated[list[AlterReplicaLogDir], F("[]struct")] = []


class AlterReplicaLogDirPartitionResult(Message):
    """The result for one log."""

    partition_index: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0


class AlterReplicaLogDirTopicResult(Message):
    """The logs of one topic."""

    topic_name: Annotated[str, F("string")] = ""
    partitions: Annotated[list[AlterReplicaLogDirPartitionResult], F("[]struct")] = []


class AlterReplicaLogDirsResponse(Message):
    """One answer for each log."""

    API_KEY = AlterReplicaLogDirsRequest.API_KEY
    VERSIONS = "1-2"
    FLEXIBLE = "2+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    results: Annotated[list[AlterReplicaLogDirTopicResult], F("[]struct")] = []
