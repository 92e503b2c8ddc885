"""Lets a partition begin anew with what buckets have of it, all of its logs given up: an API of
Strandline's own.

Source: docs/decisions/0067-partitions-out-of-buckets.md."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.messages.declare_lost import ShownReplicaLog
from strandline.protocol.table import F, Message

ALL_BUCKETS = "*"


class WantedBucket(Message):
    """A bucket whose records the partition begins with. `start_offset` and `end_offset`: what it
    has of them, as it was shown to the operator. `ALL_BUCKETS`, with `validate_only`: all that have
    records."""

    bucket: Annotated[str, F("string")] = ""
    start_offset: Annotated[int, F("int64")] = -1
    end_offset: Annotated[int, F("int64")] = -1


class RecoverPartitionRequest(Message):
    """Give up all logs of a partition, and begin with the records of these buckets. With
    `validate_only` the answer is a forecast; offsets and logs need not be known."""

    API_KEY = 20_021
    VERSIONS = "0"
    FLEXIBLE = "0+"

    topic: Annotated[str, F("string")] = ""
    partition: Annotated[int, F("int32")] = 0
    grant: Annotated[int, F("int32")] = 0  # the last that was begun, as the operator saw it
    broker_ids: Annotated[list[int], F("[]int32")] = []
    buckets: Annotated[list[WantedBucket], F("[]struct")] = []
    # Objects may be missing: then the history begins behind them.
    accepts_missing: Annotated[bool, F("bool")] = False
    logs: Annotated[list[ShownReplicaLog], F("[]struct")] = []
    by: Annotated[str, F("string")] = ""  # the operator's name
    validate_only: Annotated[bool, F("bool")] = False


class BucketHistory(Message):
    """What a bucket has of the partition: all records of [start, end)."""

    bucket: Annotated[str, F("string")] = ""
    is_wanted: Annotated[bool, F("bool")] = False
    # Why the bucket does not say; empty if it does.
    failure: Annotated[str, F("string")] = ""
    start_offset: Annotated[int, F("int64")] = -1
    end_offset: Annotated[int, F("int64")] = -1
    object_count: Annotated[int, F("int32")] = 0
    size_bytes: Annotated[int, F("int64")] = 0
    # How many of the objects, at the end, no export names.
    added_count: Annotated[int, F("int32")] = 0
    # Objects that its newest export names, and that it lacks; the first few.
    missing_count: Annotated[int, F("int32")] = 0
    missing: Annotated[list[str], F("[]string")] = []
    # The partition's, when the export was written, and that time.
    high_watermark: Annotated[int, F("int64")] = -1
    written_ms: Annotated[int, F("int64")] = -1


class RecoverPartitionResponse(Message):
    """The entries given up, or to be given up."""

    API_KEY = RecoverPartitionRequest.API_KEY
    VERSIONS = "0"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = None
    grant: Annotated[int, F("int32")] = 0  # by which it begins
    leader_id: Annotated[int, F("int32")] = -1  # a broker that votes at first
    log_end_offset: Annotated[int, F("int64")] = -1  # where the records of the buckets end
    logs: Annotated[list[ShownReplicaLog], F("[]struct")] = []  # of all brokers that are left
    buckets: Annotated[list[BucketHistory], F("[]struct")] = []  # all of the topic's
