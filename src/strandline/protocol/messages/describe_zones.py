"""What is down, by zones and regions, and whose repair waits for a person: an API of Strandline's
own.

Source: docs/decisions/0018-outages.md."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class DescribeZonesRequest(Message):
    """Asks the controller."""

    API_KEY = 20_008
    VERSIONS = "0"
    FLEXIBLE = "0+"


class DescribedZone(Message):
    """A zone or a region."""

    region: Annotated[str, F("string")] = ""
    zone: Annotated[str, F("string")] = ""  # empty: it is a region
    name: Annotated[str, F("string")] = ""  # how commands name it
    is_down: Annotated[bool, F("bool")] = False
    is_held: Annotated[bool, F("bool")] = False  # its replicas are not re-created elsewhere
    down_ms: Annotated[int, F("int64")] = -1  # for how long; -1: it is not down
    ruling: Annotated[str, F("string")] = ""  # hold, release, lost; empty: none
    ruling_until_ms: Annotated[int, F("int64")] = -1  # since 1970; -1: without an end
    brokers: Annotated[list[int], F("[]int32")] = []
    silent: Annotated[list[int], F("[]int32")] = []
    planned: Annotated[list[int], F("[]int32")] = []  # in maintenance, or to be emptied
    waiting_count: Annotated[int, F("int32")] = (
        0  # partitions with a replica, or an observer, on a silent broker there
    )
    # Down below this share of brokers that are heard, back at that one; 0: it was not told.
    low_percent: Annotated[int, F("int32", "0+", tag=0)] = 0
    high_percent: Annotated[int, F("int32", "0+", tag=1)] = 0


class ZoneHappening(Message):
    """Something that goes on."""

    # broker, zone, region, network-cut, planned; fewer-voters, observers-vote, low-quorum,
    # no-leader
    kind: Annotated[str, F("string")] = ""
    subject: Annotated[str, F("string")] = ""
    text: Annotated[str, F("string")] = ""
    lasted_ms: Annotated[int, F("int64")] = 0


class SeenBroker(Message):
    """A broker, as it is seen from the zones that tell."""

    broker_id: Annotated[int, F("int32")] = 0
    verdict: Annotated[str, F("string")] = ""  # heard, cut, silent
    heard_from: Annotated[list[str], F("[]string")] = []
    not_heard_from: Annotated[list[str], F("[]string")] = []


class DescribeZonesResponse(Message):
    """The controller's view of all zones, regions and links."""

    API_KEY = DescribeZonesRequest.API_KEY
    VERSIONS = "0"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = None
    zones: Annotated[list[DescribedZone], F("[]struct")] = []
    happenings: Annotated[list[ZoneHappening], F("[]struct")] = []
    brokers: Annotated[list[SeenBroker], F("[]struct")] = []
    # It began to lead a moment ago, and does not know yet which brokers are silent.
    is_unsettled: Annotated[bool, F("bool", "0+", tag=0)] = False
