"""What one broker knows of the cluster's health, from its own memory: an API of Strandline's own.

Why:    in an outage there may be no controller, and most brokers may be silent: each one that is
        left tells what it sees, at once.
Source: docs/decisions/0046-cluster-status.md."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class DescribeStatusRequest(Message):
    """Asks any broker."""

    API_KEY = 20_016
    VERSIONS = "0"
    FLEXIBLE = "0+"


class StatusBroker(Message):
    """A registered broker, as the answering broker sees it."""

    broker_id: Annotated[int, F("int32")] = 0
    host: Annotated[str, F("string")] = ""  # where it serves clients
    port: Annotated[int, F("int32")] = 0
    region: Annotated[str, F("string")] = ""
    zone: Annotated[str, F("string")] = ""
    is_heard: Annotated[bool, F("bool")] = False
    silent_ms: Annotated[int, F("int64")] = -1  # since it was last heard here; -1: never heard
    # Since when it is silent, in ms since 1970, by the controller's log; -1: the log does not say.
    silent_since_ms: Annotated[int, F("int64")] = -1
    # What the controller does about it: due (replaced in due_ms), held, lost (being replaced),
    # maintenance; empty: nothing, or the answering broker is not the controller.
    fate: Annotated[str, F("string")] = ""
    fate_text: Annotated[str, F("string")] = ""
    due_ms: Annotated[int, F("int64")] = -1


class StatusPartitions(Message):
    """Partitions of one topic that fare alike."""

    topic: Annotated[str, F("string")] = ""
    partitions: Annotated[list[int], F("[]int32")] = []
    # What becomes of them: election, arbitration, stands-in, lower-min-insync, let-voters-leave,
    # return, may-lack, gone.
    course: Annotated[str, F("string")] = ""
    voters: Annotated[int, F("int32")] = 0
    left: Annotated[int, F("int32")] = 0  # voters that are heard
    back: Annotated[int, F("int32")] = 0  # so many have to return before they go on by themselves
    missing: Annotated[list[int], F("[]int32")] = []  # voters that are not heard


class StatusLostLogs(Message):
    """Partitions of one topic without a leader, whose replica on the answering broker has lost its
    log: it does not vote."""

    topic: Annotated[str, F("string")] = ""
    partitions: Annotated[list[int], F("[]int32")] = []
    has_buckets: Annotated[bool, F("bool")] = False  # the topic has tiered storage


class DescribeStatusResponse(Message):
    """The cluster as one broker sees it."""

    API_KEY = DescribeStatusRequest.API_KEY
    VERSIONS = "0"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = None
    cluster_id: Annotated[str, F("string")] = ""
    broker_id: Annotated[int, F("int32")] = 0
    cluster_version: Annotated[int, F("int64")] = -1  # how much of the controller's log it has read
    controller_id: Annotated[int, F("int32")] = -1  # that it hears; -1: none
    is_controller: Annotated[bool, F("bool")] = False
    # As the controller: it has looked for long enough to know which brokers are silent.
    is_settled: Annotated[bool, F("bool")] = False
    controller_voters: Annotated[list[int], F("[]int32")] = []
    brokers: Annotated[list[StatusBroker], F("[]struct")] = []
    partition_count: Annotated[int, F("int32")] = 0
    offsets_partition_count: Annotated[int, F("int32")] = 0  # of __consumer_offsets
    leaderless: Annotated[list[StatusPartitions], F("[]struct")] = []
    refusing: Annotated[list[StatusPartitions], F("[]struct")] = []  # acks=all, of those led here
    # Partitions with a silent voter that one more loss would stop.
    thin: Annotated[list[StatusPartitions], F("[]struct")] = []
    fewer_voters_count: Annotated[int, F("int32")] = 0
    observers_vote_count: Annotated[int, F("int32")] = 0
    lost_logs: Annotated[list[StatusLostLogs], F("[]struct", "0+", tag=0)] = []
