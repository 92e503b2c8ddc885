"""Where brokers are, by all their labels, and how far one of them is from the others.

Why:    what a placement survives and costs follows from labels and distances, of which Kafka's own
        messages tell the region only.
How:    an API of our own: its key is above all of Kafka's, and clients pass over what they do not
        know. Labels and who is alive are the same from every broker; round trips are those of the
        one that answers. Version 1 tells what the configuration of each broker said at its start,
        which its labels differ from where they were changed since.
Source: design section 7; decisions 0008 and 0015."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class DescribeTopologyRequest(Message):
    """Asks one broker."""

    API_KEY = 20_000
    VERSIONS = "0-1"
    FLEXIBLE = "0+"


class TopologyLabel(Message):
    """A label that is set."""

    name: Annotated[str, F("string")] = ""
    value: Annotated[str, F("string")] = ""


class TopologyBroker(Message):
    """A registered broker."""

    broker_id: Annotated[int, F("int32")] = 0
    is_alive: Annotated[bool, F("bool")] = False  # heard lately by the one that answers
    round_trip_ms: Annotated[int, F("int32")] = -1  # smoothed; -1: not measured, or itself
    labels: Annotated[list[TopologyLabel], F("[]struct")] = []
    # of its configuration; null: not known
    configured: Annotated[list[TopologyLabel] | None, F("[]struct", "1+", nullable="1+")] = None


class DescribeTopologyResponse(Message):
    """Every broker, by id."""

    API_KEY = DescribeTopologyRequest.API_KEY
    VERSIONS = "0-1"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    broker_id: Annotated[int, F("int32")] = -1  # who answers
    brokers: Annotated[list[TopologyBroker], F("[]struct")] = []
