"""Takes a broker that is gone for good off the cluster.

Source: KIP-500 (KIP-631); Kafka 4.4 for the message in version 0."""

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class UnregisterBrokerRequest(Message):
    """The broker to take off."""

    API_KEY = 64
    VERSIONS = "0"
    FLEXIBLE = "0+"

    broker_id: Annotated[int, F("int32")] = 0


class UnregisterBrokerResponse(Message):
    """Whether it is off."""

    API_KEY = UnregisterBrokerRequest.API_KEY
    VERSIONS = "0"
    FLEXIBLE = "0+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    error_message: Annotated[str | None, F("string", nullable="0+")] = ""
