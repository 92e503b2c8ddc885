"""Partitions of topics, a page at a time.

Source: KIP-966."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from strandline.protocol.table import NO_ID, F, Message


class TopicRequest(Message):
    """A topic asked for."""

    name: Annotated[str, F("string")] = ""


class Cursor(Message):
    """Where the next page begins."""

    topic_name: Annotated[str, F("string")] = ""
    partition_index: Annotated[int, F("int32")] = 0


class DescribeTopicPartitionsRequest(Message):
    """Asks for one page."""

    API_KEY = 75
    VERSIONS = "0"
    FLEXIBLE = "0+"

    topics: Annotated[list[TopicRequest], F("[]struct")] = []
    response_partition_limit: Annotated[int, F("int32")] = 2000  # of all topics together
    cursor: Annotated[Cursor | None, F("struct", nullable="0+")] = None  # null: from the beginning


class DescribeTopicPartitionsResponsePartition(Message):
    """A partition, its leader and its replicas by broker id."""

    error_code: Annotated[int, F("int16")] = 0
    partition_index: Annotated[int, F("int32")] = 0
    leader_id: Annotated[int, F("int32")] = 0
    leader_epoch: Annotated[int, F("int32")] = -1
    replica_nodes: Annotated[list[int], F("[]int32")] = []
    isr_nodes: Annotated[list[int], F("[]int32")] = []
    # not in sync, and yet they may lead
    eligible_leader_replicas: Annotated[list[int] | None, F("[]int32", nullable="0+")] = None
    # those of before
    last_known_elr: Annotated[list[int] | None, F("[]int32", nullable="0+")] = None
    offline_replicas: Annotated[list[int], F("[]int32")] = []


class DescribeTopicPartitionsResponseTopic(Message):
    """A topic with those of its partitions that are on the page."""

    error_code: Annotated[int, F("int16")] = 0
    name: Annotated[str | None, F("string", nullable="0+")] = ""
    topic_id: Annotated[UUID, F("uuid")] = NO_ID
    is_internal: Annotated[bool, F("bool")] = False
    partitions: Annotated[list[DescribeTopicPartitionsResponsePartition], F("[]struct")] = []
    # bit set; this value: not asked for
    topic_authorized_operations: Annotated[int, F("int32")] = -(2**31)


class DescribeTopicPartitionsResponse(Message):
    """One page, and the cursor for the next."""

    API_KEY = DescribeTopicPartitionsRequest.API_KEY
    VERSIONS = "0"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    topics: Annotated[list[DescribeTopicPartitionsResponseTopic], F("[]struct")] = []
    next_cursor: Annotated[Cursor | None, F("struct", nullable="0+")] = None  # null: that was all
