"""Has partitions led by their preferred replicas.

Source: KIP-183, KIP-460."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class TopicPartitions(Message):
    """Partitions of one topic."""

    topic: Annotated[str, F("string")] = ""
    partitions: Annotated[list[int], F("[]int32")] = []


class ElectLeadersRequest(Message):
    """Partitions to hand to another leader."""

    API_KEY = 43
    VERSIONS = "0-2"
    FLEXIBLE = "2+"

    election_type: Annotated[int, F("int8", "1+")] = 0  # 0: preferred, 1: unclean
    topic_partitions: Annotated[
        list[TopicPartitions] | None, F("[]struct", nullable="0+")
    ] = []  # null: all
    timeout_ms: Annotated[int, F("int32")] = 60000


class PartitionResult(Message):
    """The result for one partition."""

    partition_id: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = ""


class ReplicaElectionResult(Message):
    """Partitions of one topic."""

    topic: Annotated[str, F("string")] = ""
    partition_result: Annotated[list[PartitionResult], F("[]struct")] = []


class ElectLeadersResponse(Message):
    """One answer per partition."""

    API_KEY = ElectLeadersRequest.API_KEY
    VERSIONS = "0-2"
    FLEXIBLE = "2+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16", "1+")] = 0
    replica_election_results: Annotated[list[ReplicaElectionResult], F("[]struct")] = []
