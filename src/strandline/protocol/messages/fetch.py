"""Reads record batches. The hot path has its own code in `protocol.fast_fetch`.

Source: KIP-227 (sessions, version 7), KIP-392 (nearest replica, version 11), KIP-595 (divergence,
        version 12), KIP-516 (topic ids, version 13), KIP-903 (replica state, version 15), KIP-951
        (new leader, version 16), KIP-1166 (version 18)."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from strandline.protocol.table import NO_ID, F, Message, Records, Value


class ReplicaState(Value, frozen=True):
    """Which replica fetches; a consumer leaves the defaults."""

    replica_id: Annotated[int, F("int32", "15+")] = -1
    replica_epoch: Annotated[int, F("int64", "15+")] = -1


class FetchPartition(Message):
    """One partition to read, from where, and at most how much."""

    partition: Annotated[int, F("int32")] = 0
    current_leader_epoch: Annotated[int, F("int32", "9+")] = -1  # -1: not known to the client
    fetch_offset: Annotated[int, F("int64")] = 0
    last_fetched_epoch: Annotated[int, F("int32", "12+")] = -1  # for finding where two logs part
    log_start_offset: Annotated[int, F("int64", "5+")] = -1  # of a follower; -1 from a consumer
    partition_max_bytes: Annotated[int, F("int32")] = 0
    replica_directory_id: Annotated[UUID, F("uuid", "17+", tag=0)] = NO_ID
    # of a follower; this value: it does not say
    high_watermark: Annotated[int, F("int64", "18+", tag=1)] = 2**63 - 1


class FetchTopic(Message):
    """The partitions of one topic; by name up to version 12, by id after it."""

    topic: Annotated[str, F("string", "0-12")] = ""
    topic_id: Annotated[UUID, F("uuid", "13+")] = NO_ID
    partitions: Annotated[list[FetchPartition], F("[]struct")] = []


class ForgottenTopic(Message):
    """Partitions that leave the fetch session."""

    topic: Annotated[str, F("string", "7-12")] = ""
    topic_id: Annotated[UUID, F("uuid", "13+")] = NO_ID
    partitions: Annotated[list[int], F("[]int32", "7+")] = []


class FetchRequest(Message):
    """Reads from any number of partitions, waiting until there is enough or time is up."""

    API_KEY = 1
    VERSIONS = "4-18"
    FLEXIBLE = "12+"

    # only among controllers
    cluster_id: Annotated[str | None, F("string", "12+", nullable="12+", tag=0)] = None
    replica_id: Annotated[int, F("int32", "0-14")] = -1  # -1: a consumer
    replica_state: Annotated[ReplicaState, F("struct", "15+", tag=1)] = ReplicaState()
    max_wait_ms: Annotated[int, F("int32")] = 0
    min_bytes: Annotated[int, F("int32")] = 0
    max_bytes: Annotated[int, F("int32", "3+")] = 2**31 - 1
    # 0: up to the high watermark, 1: only committed
    isolation_level: Annotated[int, F("int8", "4+")] = 0
    session_id: Annotated[int, F("int32", "7+")] = 0  # 0: no session yet
    # -1: no session, 0: open one, then 1, 2, ...
    session_epoch: Annotated[int, F("int32", "7+")] = -1
    topics: Annotated[list[FetchTopic], F("[]struct")] = []
    # only in a session
    forgotten_topics_data: Annotated[list[ForgottenTopic], F("[]struct", "7+")] = []
    rack_id: Annotated[str, F("string", "11+")] = ""  # where the consumer is, for reading near


class EpochEndOffset(Value, frozen=True):
    """Where the fetching replica's log diverges from ours; -1 if it does not."""

    epoch: Annotated[int, F("int32", "12+")] = -1
    end_offset: Annotated[int, F("int64", "12+")] = -1  # exclusive; -1: unknown


class LeaderIdAndEpoch(Value, frozen=True):
    """The current leader of a partition; -1 if unknown."""

    leader_id: Annotated[int, F("int32", "12+")] = -1
    leader_epoch: Annotated[int, F("int32", "12+")] = -1


class SnapshotId(Value, frozen=True):
    """The snapshot to read instead; only the controllers of Kafka use it."""

    end_offset: Annotated[int, F("int64")] = -1
    epoch: Annotated[int, F("int32")] = -1


class AbortedTransaction(Message):
    """A producer whose records from `first_offset` on were aborted."""

    producer_id: Annotated[int, F("int64", "4+")] = 0
    first_offset: Annotated[int, F("int64", "4+")] = 0


class PartitionData(Message):
    """The batches read from one partition, and its marks."""

    partition_index: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    high_watermark: Annotated[int, F("int64")] = 0  # exclusive
    # exclusive; all transactions below are decided
    last_stable_offset: Annotated[int, F("int64", "4+")] = -1
    log_start_offset: Annotated[int, F("int64", "5+")] = -1
    diverging_epoch: Annotated[EpochEndOffset, F("struct", "12+", tag=0)] = EpochEndOffset()
    current_leader: Annotated[LeaderIdAndEpoch, F("struct", "12+", tag=1)] = LeaderIdAndEpoch()
    snapshot_id: Annotated[SnapshotId, F("struct", "12+", tag=2)] = SnapshotId()
    # null unless only committed records were asked for
    aborted_transactions: Annotated[
        list[AbortedTransaction] | None, F("[]struct", "4+", nullable="4+")
    ] = []
    # -1: stay; else read from that broker
    preferred_read_replica: Annotated[int, F("int32", "11+")] = -1
    records: Annotated[Records | None, F("records", nullable="0+")] = None


class FetchableTopicResponse(Message):
    """The partitions of one topic."""

    topic: Annotated[str, F("string", "0-12")] = ""
    topic_id: Annotated[UUID, F("uuid", "13+")] = NO_ID
    partitions: Annotated[list[PartitionData], F("[]struct")] = []


class NodeEndpoint(Message):
    """Where a broker that `current_leader` names can be reached."""

    node_id: Annotated[int, F("int32", "16+")] = 0
    host: Annotated[str, F("string", "16+")] = ""
    port: Annotated[int, F("int32", "16+")] = 0
    rack: Annotated[str | None, F("string", "16+", nullable="16+")] = None


class FetchResponse(Message):
    """The records read; in a session only the partitions with news."""

    API_KEY = FetchRequest.API_KEY
    VERSIONS = "4-18"
    FLEXIBLE = "12+"

    throttle_time_ms: Annotated[int, F("int32", "1+")] = 0
    error_code: Annotated[int, F("int16", "7+")] = 0
    session_id: Annotated[int, F("int32", "7+")] = 0  # 0: no session
    responses: Annotated[list[FetchableTopicResponse], F("[]struct")] = []
    # of all `current_leader`s above
    node_endpoints: Annotated[list[NodeEndpoint], F("[]struct", "16+", tag=0)] = []
