"""The idempotent producers that a partition knows.

Source: KIP-664."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class TopicRequest(Message):
    """Partitions of one topic."""

    name: Annotated[str, F("string")] = ""
    partition_indexes: Annotated[list[int], F("[]int32")] = []


class DescribeProducersRequest(Message):
    """Asks the leader of these partitions."""

    API_KEY = 61
    VERSIONS = "0"
    FLEXIBLE = "0+"

    topics: Annotated[list[TopicRequest], F("[]struct")] = []


class ProducerState(Message):
    """One producer and what it wrote last."""

    producer_id: Annotated[int, F("int64")] = 0
    producer_epoch: Annotated[int, F("int32")] = 0
    last_sequence: Annotated[int, F("int32")] = -1
    last_timestamp: Annotated[int, F("int64")] = -1
    coordinator_epoch: Annotated[int, F("int32")] = 0  # of the last end of a transaction
    current_txn_start_offset: Annotated[int, F("int64")] = -1  # -1: no transaction is open


class PartitionResponse(Message):
    """The producers of one partition."""

    partition_index: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = None
    active_producers: Annotated[list[ProducerState], F("[]struct")] = []


class TopicResponse(Message):
    """The partitions of one topic."""

    name: Annotated[str, F("string")] = ""
    partitions: Annotated[list[PartitionResponse], F("[]struct")] = []


class DescribeProducersResponse(Message):
    """One answer for each partition."""

    API_KEY = DescribeProducersRequest.API_KEY
    VERSIONS = "0"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    topics: Annotated[list[TopicResponse], F("[]struct")] = []
