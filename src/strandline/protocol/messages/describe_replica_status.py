"""How far each replica of partitions is, by their leaders, and where the log of the one who answers
begins: an API of Strandline's own.

Source: reference observers 4.4 (the fields of kafka-replica-status)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class ReplicaStatusTopic(Message):
    """Partitions of one topic to look at."""

    name: Annotated[str, F("string")] = ""
    partition_indexes: Annotated[list[int], F("[]int32")] = []


class DescribeReplicaStatusRequest(Message):
    """Asks a leader, or any broker for its own log."""

    API_KEY = 20_006
    VERSIONS = "0"
    FLEXIBLE = "0+"

    topics: Annotated[list[ReplicaStatusTopic], F("[]struct")] = []


class ReplicaStatus(Message):
    """One replica, as its leader knows it; -1 where that does not know."""

    broker_id: Annotated[int, F("int32")] = 0
    is_leader: Annotated[bool, F("bool")] = False
    is_observer: Annotated[bool, F("bool")] = False
    is_isr_eligible: Annotated[bool, F("bool")] = False
    is_in_isr: Annotated[bool, F("bool")] = False
    is_caught_up: Annotated[bool, F("bool")] = False
    # for how long it lacks something; -1 also where it lacks what an earlier leader appended
    last_caught_up_lag_ms: Annotated[int, F("int64")] = -1
    last_fetch_lag_ms: Annotated[int, F("int64")] = -1  # since its broker was last heard
    log_start_offset: Annotated[int, F("int64")] = -1  # of the leader only
    log_end_offset: Annotated[int, F("int64")] = -1


class PartitionReplicaStatus(Message):
    """One partition, with its replicas where the one who answers leads it."""

    partition_index: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    leader_epoch: Annotated[int, F("int32")] = -1
    leading_ms: Annotated[int, F("int64")] = -1  # for how long its leader leads
    replicas: Annotated[list[ReplicaStatus], F("[]struct")] = []
    # Of the replica that the one who answers has, whoever leads; -1 where it has none that works.
    log_start_offset: Annotated[int, F("int64", "0+", tag=0)] = -1


class TopicReplicaStatus(Message):
    """The partitions of one topic that were asked for."""

    name: Annotated[str, F("string")] = ""
    partitions: Annotated[list[PartitionReplicaStatus], F("[]struct")] = []


class DescribeReplicaStatusResponse(Message):
    """As many partitions as were asked for, in that order."""

    API_KEY = DescribeReplicaStatusRequest.API_KEY
    VERSIONS = "0"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    topics: Annotated[list[TopicReplicaStatus], F("[]struct")] = []
