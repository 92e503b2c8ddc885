"""How far the replicas of the controller's log are.

Source: KIP-595; KIP-836 (times, version 1); KIP-853 (directories and endpoints, version 2)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from strandline.protocol.table import NO_ID, F, Message


class RequestedPartition(Message):
    """A partition to describe; of the controller's log there is one."""

    partition_index: Annotated[int, F("int32")] = 0


class RequestedTopic(Message):
    """The partitions of one topic."""

    topic_name: Annotated[str, F("string")] = ""
    partitions: Annotated[list[RequestedPartition], F("[]struct")] = []


class DescribeQuorumRequest(Message):
    """Asks about `__cluster_metadata`, partition 0."""

    API_KEY = 55
    VERSIONS = "0-2"
    FLEXIBLE = "0+"

    topics: Annotated[list[RequestedTopic], F("[]struct")] = []


class ReplicaState(Message):
    """One replica, as the leader knows it. Times are the leader's wall clock, -1: unknown."""

    replica_id: Annotated[int, F("int32")] = 0
    replica_directory_id: Annotated[UUID, F("uuid", "2+")] = NO_ID
    log_end_offset: Annotated[int, F("int64")] = 0  # exclusive; -1: unknown
    last_fetch_timestamp: Annotated[int, F("int64", "1+")] = -1  # of the leader: now
    last_caught_up_timestamp: Annotated[int, F("int64", "1+")] = -1


class PartitionData(Message):
    """The log, its leader and all its replicas."""

    partition_index: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", "2+", nullable="2+")] = ""
    leader_id: Annotated[int, F("int32")] = 0  # -1: unknown
    leader_epoch: Annotated[int, F("int32")] = 0
    high_watermark: Annotated[int, F("int64")] = 0  # exclusive
    current_voters: Annotated[list[ReplicaState], F("[]struct")] = []
    observers: Annotated[list[ReplicaState], F("[]struct")] = []


class TopicData(Message):
    """The partitions of one topic."""

    topic_name: Annotated[str, F("string")] = ""
    partitions: Annotated[list[PartitionData], F("[]struct")] = []


class Listener(Message):
    """Where a voter can be reached."""

    name: Annotated[str, F("string", "2+")] = ""
    host: Annotated[str, F("string", "2+")] = ""
    port: Annotated[int, F("uint16", "2+")] = 0


class Node(Message):
    """A voter and its endpoints."""

    node_id: Annotated[int, F("int32", "2+")] = 0
    listeners: Annotated[list[Listener], F("[]struct", "2+")] = []


class DescribeQuorumResponse(Message):
    """The state of the quorum."""

    API_KEY = DescribeQuorumRequest.API_KEY
    VERSIONS = "0-2"
    FLEXIBLE = "0+"

    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", "2+", nullable="2+")] = ""
    topics: Annotated[list[TopicData], F("[]struct")] = []
    nodes: Annotated[list[Node], F("[]struct", "2+")] = []
