"""Where an epoch ended: how a client learns that its position was truncated.

Source: KIP-101, KIP-279, KIP-320."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class OffsetForLeaderPartition(Message):
    """A partition and the epoch asked for."""

    partition: Annotated[int, F("int32")] = 0
    current_leader_epoch: Annotated[int, F("int32", "2+")] = -1  # -1: not known to the client
    leader_epoch: Annotated[int, F("int32")] = 0


class OffsetForLeaderTopic(Message):
    """The partitions of one topic."""

    topic: Annotated[str, F("string")] = ""
    partitions: Annotated[list[OffsetForLeaderPartition], F("[]struct")] = []


class OffsetForLeaderEpochRequest(Message):
    """Asks for the end of one epoch per partition."""

    API_KEY = 23
    VERSIONS = "2-4"
    FLEXIBLE = "4+"

    replica_id: Annotated[int, F("int32", "3+")] = -2  # -1: a consumer, -2: a consumer that debugs
    topics: Annotated[list[OffsetForLeaderTopic], F("[]struct")] = []


class EpochEndOffset(Message):
    """Where the epoch ended in the leader's log."""

    error_code: Annotated[int, F("int16")] = 0
    partition: Annotated[int, F("int32")] = 0
    # the epoch found: the largest not above the one asked for
    leader_epoch: Annotated[int, F("int32", "1+")] = -1
    end_offset: Annotated[int, F("int64")] = -1  # exclusive; -1: unknown


class OffsetForLeaderTopicResult(Message):
    """The partitions of one topic."""

    topic: Annotated[str, F("string")] = ""
    partitions: Annotated[list[EpochEndOffset], F("[]struct")] = []


class OffsetForLeaderEpochResponse(Message):
    """One answer per partition."""

    API_KEY = OffsetForLeaderEpochRequest.API_KEY
    VERSIONS = "2-4"
    FLEXIBLE = "4+"

    throttle_time_ms: Annotated[int, F("int32", "2+")] = 0
    topics: Annotated[list[OffsetForLeaderTopicResult], F("[]struct")] = []
