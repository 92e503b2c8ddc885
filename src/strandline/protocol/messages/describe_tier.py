"""What buckets hold of partitions, as their leaders' logs say: an API of Strandline's own.

Why:    only a partition's log knows what is in a bucket; a listing does not.
Source: decision 0058."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from strandline.protocol.table import F, Message

NO_TOPIC_ID = UUID(int=0)


class DescribeTierRequest(Message):
    """Asks any broker about partitions that it leads: those of `topics`, of all topics if there are
    none; or about one partition with its whole state, by the topic's id."""

    API_KEY = 20_018
    VERSIONS = "0"
    FLEXIBLE = "0+"

    topics: Annotated[list[str], F("[]string")] = []
    topic_id: Annotated[UUID, F("uuid")] = NO_TOPIC_ID  # zero: the partitions of `topics`
    partition: Annotated[int, F("int32")] = -1


class TierBucketStatus(Message):
    """One bucket of one partition. Only live objects count."""

    bucket: Annotated[str, F("string")] = ""
    # Whether the topic's segments go there now.
    is_wanted: Annotated[bool, F("bool")] = False
    start_offset: Annotated[int, F("int64")] = 0
    end_offset: Annotated[int, F("int64")] = 0
    object_count: Annotated[int, F("int64")] = 0
    size_bytes: Annotated[int, F("int64")] = 0
    # Of closed segments that the bucket lacks; and since when the oldest of them is closed, in ms
    # since 1970, -1 for none.
    pending_bytes: Annotated[int, F("int64")] = 0
    pending_since_ms: Annotated[int, F("int64")] = -1
    upload_count: Annotated[int, F("int32")] = 0
    # Objects that count no more and are not deleted yet.
    removal_count: Annotated[int, F("int32")] = 0
    removal_bytes: Annotated[int, F("int64")] = 0


class TierPartitionStatus(Message):
    """One partition that this broker leads."""

    topic: Annotated[str, F("string")] = ""
    topic_id: Annotated[UUID, F("uuid")] = NO_TOPIC_ID
    partition: Annotated[int, F("int32")] = 0
    leader_epoch: Annotated[int, F("int32")] = -1
    log_start_offset: Annotated[int, F("int64")] = 0
    local_start_offset: Annotated[int, F("int64")] = 0
    high_watermark: Annotated[int, F("int64")] = 0
    buckets: Annotated[list[TierBucketStatus], F("[]struct")] = []
    # A checkpoint as in the log (`tiered.state.encoding`), if one partition was asked for.
    state: Annotated[bytes | None, F("bytes", nullable="0+")] = None


class TierBucketTraffic(Message):
    """What this broker has asked of one bucket since it started."""

    bucket: Annotated[str, F("string")] = ""
    put_count: Annotated[int, F("int64")] = 0
    get_count: Annotated[int, F("int64")] = 0
    list_count: Annotated[int, F("int64")] = 0
    delete_count: Annotated[int, F("int64")] = 0
    sent_bytes: Annotated[int, F("int64")] = 0
    received_bytes: Annotated[int, F("int64")] = 0


class DescribeTierResponse(Message):
    """What this broker leads, with buckets in use or wanted."""

    API_KEY = DescribeTierRequest.API_KEY
    VERSIONS = "0"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    # Of one partition: UNKNOWN_TOPIC_ID if this broker is the controller and the topic was deleted
    # for certain; NOT_CONTROLLER if another broker has to say that; UNKNOWN_TOPIC_OR_PARTITION if
    # the controller knows neither the topic nor its deletion, or the topic has fewer partitions;
    # NOT_LEADER_OR_FOLLOWER if this broker does not lead it for certain now;
    # TOPIC_AUTHORIZATION_FAILED without `read` on its topic
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = None
    cluster_id: Annotated[str, F("string")] = ""
    broker_id: Annotated[int, F("int32")] = -1
    partitions: Annotated[list[TierPartitionStatus], F("[]struct")] = []
    # Of every bucket of this broker; empty if one partition was asked for.
    traffic: Annotated[list[TierBucketTraffic], F("[]struct", tag=0)] = []
