"""Digests of ranges of a partition's log on the broker that answers: an API of Strandline's own.

Why:    replicas are compared by some bytes for each megabyte, without moving a record.
Source: decision 0052."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from strandline.protocol.table import F, Message

NO_TOPIC_ID = UUID(int=0)


class DigestRange(Message):
    """Offsets from `start_offset` to before `end_offset`."""

    start_offset: Annotated[int, F("int64")] = 0
    end_offset: Annotated[int, F("int64")] = 0


class DigestReplicaRequest(Message):
    """Asks any broker about its own replica. Ranges ascend and do not overlap; without ranges, the
    answer only describes the replica."""

    API_KEY = 20_017
    VERSIONS = "0"
    FLEXIBLE = "0+"

    topic: Annotated[str, F("string")] = ""
    topic_id: Annotated[UUID, F("uuid")] = NO_TOPIC_ID  # zero: whatever topic has the name
    partition: Annotated[int, F("int32")] = 0
    # Of `storage.digests.ranges.DigestKind`. LATEST needs ranges that touch each other.
    kind: Annotated[int, F("int8")] = 0
    ranges: Annotated[list[DigestRange], F("[]struct")] = []
    # Whether Raft's markers at the first range's start belong to it.
    first_markers: Annotated[bool, F("bool")] = False
    # Of LATEST: only keys of this share, to bound the broker's memory.
    key_share: Annotated[int, F("int32")] = 0
    key_share_count: Annotated[int, F("int32")] = 1
    # Evict closed segments from the page cache first, so that the bytes come from the disk.
    from_disk: Annotated[bool, F("bool")] = False


class RangeDigestResult(Message):
    """One range; what was digested is counted."""

    record_count: Annotated[int, F("int64")] = 0
    batch_count: Annotated[int, F("int64")] = 0
    marker_count: Annotated[int, F("int64")] = 0
    size_bytes: Annotated[int, F("int64")] = 0
    first_offset: Annotated[int, F("int64")] = -1
    last_offset: Annotated[int, F("int64")] = -1
    digest: Annotated[bytes, F("bytes")] = b""


class DigestReplicaResponse(Message):
    """The replica when the request began, and the first ranges of those asked for: as many as one
    request may read. The ranges end before the first damaged batch."""

    API_KEY = DigestReplicaRequest.API_KEY
    VERSIONS = "0"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    # TOPIC_AUTHORIZATION_FAILED without `read` on the topic;
    # UNKNOWN_TOPIC_OR_PARTITION; INCONSISTENT_TOPIC_ID; NOT_LEADER_OR_FOLLOWER without a replica
    # here; KAFKA_STORAGE_ERROR with one whose log cannot be used; OFFSET_OUT_OF_RANGE for a range
    # that is not within the local log start and the high watermark; THROTTLING_QUOTA_EXCEEDED
    # while too many such requests wait; POLICY_VIOLATION for a share with too many keys
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = None
    is_leader: Annotated[bool, F("bool")] = False
    leader_epoch: Annotated[int, F("int32")] = -1
    # Of the log on this broker's disk: records in buckets alone are not digested.
    log_start_offset: Annotated[int, F("int64")] = -1
    high_watermark: Annotated[int, F("int64")] = -1
    log_end_offset: Annotated[int, F("int64")] = -1
    log_bytes: Annotated[int, F("int64")] = -1
    # Whether compaction may have removed records here: then only LATEST must be equal.
    is_compacted: Annotated[bool, F("bool")] = False
    # Whether retention, total or local, may remove records from the log's beginning.
    may_expire: Annotated[bool, F("bool")] = False
    # Compaction has used no record from this offset on.
    open_segment_offset: Annotated[int, F("int64")] = -1
    ranges: Annotated[list[RangeDigestResult], F("[]struct")] = []
    # The first damaged batch that the walk met, -1 for none. `damaged_end_offset`: where sound
    # batches follow, -1 if not known.
    damaged_offset: Annotated[int, F("int64")] = -1
    damaged_end_offset: Annotated[int, F("int64")] = -1
    damage: Annotated[str | None, F("string", nullable="0+")] = None
