"""What the balancer of replicas does and what waits, and why: an API of Strandline's own.

Version 1 tells how fast copies may be, version 2 how much each move copies, and the numbers behind
it.
Source: docs/decisions/0010-the-balancer.md."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class DescribeBalanceRequest(Message):
    """Asks the controller."""

    API_KEY = 20_001
    VERSIONS = "0-2"
    FLEXIBLE = "0+"


class BalanceBroker(Message):
    """A broker as the balancer sees it."""

    broker_id: Annotated[int, F("int32")] = 0
    # up, settling (up, and not yet given replicas), down, lost
    condition: Annotated[str, F("string")] = ""
    down_ms: Annotated[int, F("int64")] = 0  # for how long it has been down; 0 when it is up
    is_leaving: Annotated[bool, F("bool")] = False  # being decommissioned
    replica_count: Annotated[int, F("int32")] = 0  # that it holds, or is to hold
    moving_count: Annotated[int, F("int32")] = 0  # of those, moving away
    # until when it is in maintenance; -1: without an end, 0: it is not
    maintenance_until_ms: Annotated[int, F("int64")] = 0
    disk_used_percent: Annotated[int, F("int32")] = -1  # -1: not known yet
    is_disk_full: Annotated[bool, F("bool")] = False  # too full for more replicas


class BalanceMove(Message):
    """A partition that the balancer moves."""

    topic: Annotated[str, F("string")] = ""
    partition: Annotated[int, F("int32")] = 0
    replicas: Annotated[list[int], F("[]int32")] = []
    target: Annotated[list[int], F("[]int32")] = []
    code: Annotated[str, F("string")] = ""  # empty: begun by an earlier controller
    text: Annotated[str, F("string", "2+")] = ""  # the numbers behind it, where there are any
    log_bytes: Annotated[int, F("int64", "2+")] = -1  # of the partition; -1: not known


class LeavingCount(Message):
    """How many of the partitions that wait a broker holds that is being decommissioned."""

    broker_id: Annotated[int, F("int32")] = 0
    count: Annotated[int, F("int32")] = 0


class BalanceWait(Message):
    """Partitions that wait for the same."""

    code: Annotated[str, F("string")] = ""
    text: Annotated[str, F("string")] = ""
    partition_count: Annotated[int, F("int32")] = 0
    examples: Annotated[list[str], F("[]string")] = []  # topic-index, the first few
    leaving: Annotated[list[LeavingCount], F("[]struct")] = []


class BalanceCount(Message):
    """Moves that were begun for one reason."""

    code: Annotated[str, F("string")] = ""
    count: Annotated[int, F("int64")] = 0


class CopyShare(Message):
    """The share of a budget that one copying broker has now."""

    broker_id: Annotated[int, F("int32")] = 0
    bytes_per_s: Annotated[int, F("int64")] = 0


class CopyRate(Message):
    """The budget of all copies to new replicas that count for it together."""

    name: Annotated[str, F("string")] = ""  # all, cross-region, "to broker N"
    bytes_per_s: Annotated[int, F("int64")] = 0
    shares: Annotated[list[CopyShare], F("[]struct")] = []


class DescribeBalanceResponse(Message):
    """The balancer's state."""

    API_KEY = DescribeBalanceRequest.API_KEY
    VERSIONS = "0-2"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = None
    is_enabled: Annotated[bool, F("bool")] = False
    moves_max: Annotated[int, F("int32")] = 0
    lost_after_ms: Annotated[int, F("int64")] = 0
    has_looked: Annotated[bool, F("bool")] = False  # since this broker became the controller
    brokers: Annotated[list[BalanceBroker], F("[]struct")] = []
    moves: Annotated[list[BalanceMove], F("[]struct")] = []
    waits: Annotated[list[BalanceWait], F("[]struct")] = []
    begun: Annotated[list[BalanceCount], F("[]struct")] = []
    rates: Annotated[list[CopyRate], F("[]struct", "1+")] = []  # the budgets that are set
