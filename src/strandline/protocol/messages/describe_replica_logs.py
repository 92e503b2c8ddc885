"""Where the log of a partition ends on the broker that answers, whoever leads, or nobody does: an
API of Strandline's own.

Why:    once most voters are lost nobody leads, and what is left is asked of each survivor.
Source: decision 0026."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class DescribeReplicaLogsRequest(Message):
    """Asks any broker about a partition."""

    API_KEY = 20_013
    VERSIONS = "0"
    FLEXIBLE = "0+"

    topic: Annotated[str, F("string")] = ""
    partition: Annotated[int, F("int32")] = 0


class PossibleVoters(Message):
    """Voters that may be in force."""

    voters: Annotated[list[int], F("[]int32")] = []


class DescribeReplicaLogsResponse(Message):
    """The partition as this broker knows it, and its own replica; offsets and epochs of that are -1
    where it has none."""

    API_KEY = DescribeReplicaLogsRequest.API_KEY
    VERSIONS = "0"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    # UNKNOWN_TOPIC_OR_PARTITION; NOT_LEADER_OR_FOLLOWER without a replica here;
    # KAFKA_STORAGE_ERROR with one whose log cannot be used
    error_code: Annotated[int, F("int16")] = 0
    # How much of the controller's log this broker has replayed: the larger knows more.
    cluster_version: Annotated[int, F("int64")] = -1
    possible: Annotated[list[PossibleVoters], F("[]struct")] = []
    grant: Annotated[int, F("int32")] = 0
    is_led: Annotated[bool, F("bool")] = False  # it leads, or knows a leader that lives
    leader_id: Annotated[int, F("int32")] = -1  # the last that it knows, alive or not
    epoch: Annotated[int, F("int32")] = -1  # that it lives in
    last_epoch: Annotated[int, F("int32")] = -1  # of the last entry of its log
    last_index: Annotated[int, F("int64")] = -1
    log_start_offset: Annotated[int, F("int64")] = -1
    committed_offset: Annotated[int, F("int64")] = -1  # below it all is known to be committed
    log_end_offset: Annotated[int, F("int64")] = -1
    # It has lost what it had acknowledged, and not rejoined since: its log proves nothing.
    has_lost: Annotated[bool, F("bool")] = False
    # A loss was declared, and nobody has led since: every one of the voters is needed for an
    # appointment.
    needs_all: Annotated[bool, F("bool", "0+", tag=0)] = False
    # The min.insync.replicas that the first of `possible` keep to; 0: a majority is all there is.
    floor: Annotated[int, F("int32", "0+", tag=1)] = 0
