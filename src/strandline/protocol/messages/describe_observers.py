"""Which replicas of partitions are observers: an API of Strandline's own, for Kafka's messages know
no roles.

Source: docs/decisions/0017-observers.md."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class DescribeObserversRequest(Message):
    """Asks any broker about these topics, or all."""

    API_KEY = 20_005
    VERSIONS = "0"
    FLEXIBLE = "0+"

    topics: Annotated[list[str] | None, F("[]string", nullable="0+")] = None


class ObservedPartition(Message):
    """A partition that has observers, or is to have some, or in which others vote now than when
    all is well."""

    topic: Annotated[str, F("string")] = ""
    partition: Annotated[int, F("int32")] = 0
    observers: Annotated[list[int], F("[]int32")] = []
    # while replicas move: the observers in the end
    is_moving: Annotated[bool, F("bool")] = False
    target_observers: Annotated[list[int], F("[]int32")] = []
    # Who votes now, where others do than when all is well.
    acting: Annotated[list[int], F("[]int32", "0+", tag=0)] = []


class DescribeObserversResponse(Message):
    """All of them, by topic and partition; of others there is nothing to tell."""

    API_KEY = DescribeObserversRequest.API_KEY
    VERSIONS = "0"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    partitions: Annotated[list[ObservedPartition], F("[]struct")] = []
