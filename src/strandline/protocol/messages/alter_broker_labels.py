"""Changes labels of brokers that run: an API of Strandline's own.

Source: docs/decisions/0015-labels-at-run-time.md."""

# ruff: noqa: RUF012 - msgspec gives every message its own list.

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class LabelChange(Message):
    """A label and its new value; null takes it off."""

    name: Annotated[str, F("string")] = ""
    value: Annotated[str | None, F("string", nullable="0+")] = None


class AlterBrokerLabelsRequest(Message):
    """All the changes to each of the brokers, or none of them to any."""

    API_KEY = 20_004
    VERSIONS = "0"
    FLEXIBLE = "0+"

    broker_ids: Annotated[list[int], F("[]int32")] = []
    changes: Annotated[list[LabelChange], F("[]struct")] = []
    is_forced: Annotated[bool, F("bool")] = False  # whatever policies make of it
    validate_only: Annotated[bool, F("bool")] = False


class AlteredLabel(Message):
    """A label that is set."""

    name: Annotated[str, F("string")] = ""
    value: Annotated[str, F("string")] = ""


class AlteredBroker(Message):
    """A broker with all its labels, as they are after that."""

    broker_id: Annotated[int, F("int32")] = 0
    labels: Annotated[list[AlteredLabel], F("[]struct")] = []


class AlteredTopic(Message):
    """A topic with partitions that no longer keep its policy: they move."""

    topic: Annotated[str, F("string")] = ""
    partition_count: Annotated[int, F("int32")] = 0
    partitions: Annotated[list[int], F("[]int32")] = []  # the first few


class AlterBrokerLabelsResponse(Message):
    """The result."""

    API_KEY = AlterBrokerLabelsRequest.API_KEY
    VERSIONS = "0"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = None
    brokers: Annotated[list[AlteredBroker], F("[]struct")] = []
    moves: Annotated[list[AlteredTopic], F("[]struct")] = []
    objections: Annotated[list[str], F("[]string")] = []  # what it was forced against
