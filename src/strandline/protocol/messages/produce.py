"""Appends record batches. The hot path has its own code in `protocol.fast_produce`.

Why:    versions 0 to 2 are advertised (librdkafka derives features from the range) and refused.
Source: KIP-467 (record errors, version 8), KIP-951 (new leader in the answer, version 10), KIP-516
        (topic ids, version 13)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from strandline.base.disk import Buffer
from strandline.protocol.table import NO_ID, F, Message, Value


class PartitionProduceData(Message):
    """The batches for one partition."""

    index: Annotated[int, F("int32")] = 0
    records: Annotated[Buffer | None, F("records", nullable="0+")] = None


class TopicProduceData(Message):
    """The partitions of one topic; by name up to version 12, by id after it."""

    name: Annotated[str, F("string", "0-12")] = ""
    topic_id: Annotated[UUID, F("uuid", "13+")] = NO_ID
    partition_data: Annotated[list[PartitionProduceData], F("[]struct")] = []


class ProduceRequest(Message):
    """Batches for any number of partitions, and how many replicas must have them."""

    API_KEY = 0
    VERSIONS = "3-13"
    FLEXIBLE = "9+"

    transactional_id: Annotated[str | None, F("string", "3+", nullable="3+")] = None
    acks: Annotated[int, F("int16")] = 0  # 0: none, 1: the leader, -1: the write quorum
    timeout_ms: Annotated[int, F("int32")] = 0
    topic_data: Annotated[list[TopicProduceData], F("[]struct")] = []


class BatchIndexAndErrorMessage(Message):
    """Why one record had its whole batch refused."""

    batch_index: Annotated[int, F("int32", "8+")] = 0
    batch_index_error_message: Annotated[str | None, F("string", "8+", nullable="8+")] = None


class LeaderIdAndEpoch(Value, frozen=True):
    """The current leader of a partition; -1 if unknown."""

    leader_id: Annotated[int, F("int32", "10+")] = -1
    leader_epoch: Annotated[int, F("int32", "10+")] = -1


class PartitionProduceResponse(Message):
    """The result for the batches of one partition."""

    index: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    base_offset: Annotated[int, F("int64")] = 0
    # -1 unless the broker sets the timestamps
    log_append_time_ms: Annotated[int, F("int64", "2+")] = -1
    log_start_offset: Annotated[int, F("int64", "5+")] = -1
    record_errors: Annotated[list[BatchIndexAndErrorMessage], F("[]struct", "8+")] = []
    error_message: Annotated[str | None, F("string", "8+", nullable="8+")] = None
    # set with NOT_LEADER_OR_FOLLOWER
    current_leader: Annotated[LeaderIdAndEpoch, F("struct", "10+", tag=0)] = LeaderIdAndEpoch()


class TopicProduceResponse(Message):
    """The partitions of one topic."""

    name: Annotated[str, F("string", "0-12")] = ""
    topic_id: Annotated[UUID, F("uuid", "13+")] = NO_ID
    partition_responses: Annotated[list[PartitionProduceResponse], F("[]struct")] = []


class NodeEndpoint(Message):
    """Where a broker that `current_leader` names can be reached."""

    node_id: Annotated[int, F("int32", "10+")] = 0
    host: Annotated[str, F("string", "10+")] = ""
    port: Annotated[int, F("int32", "10+")] = 0
    rack: Annotated[str | None, F("string", "10+", nullable="10+")] = None


class ProduceResponse(Message):
    """One answer per partition of the request. There is no response at all with acks 0."""

    API_KEY = ProduceRequest.API_KEY
    VERSIONS = "3-13"
    FLEXIBLE = "9+"

    responses: Annotated[list[TopicProduceResponse], F("[]struct")] = []
    throttle_time_ms: Annotated[int, F("int32", "1+")] = 0
    # of all `current_leader`s above
    node_endpoints: Annotated[list[NodeEndpoint], F("[]struct", "10+", tag=0)] = []
