"""Gives a producer its id and epoch.

Why:    version 6 (two-phase commit) is in flux in Kafka, too: a broker should offer 0 to 5.
Source: KIP-98, KIP-360 (resuming with an id, version 3), KIP-939 (version 6)."""

from __future__ import annotations

from typing import Annotated

from strandline.protocol.table import F, Message


class InitProducerIdRequest(Message):
    """Asks for an id, or for the next epoch of an id."""

    API_KEY = 22
    VERSIONS = "0-6"
    FLEXIBLE = "2+"

    # null: idempotent only
    transactional_id: Annotated[str | None, F("string", nullable="0+")] = ""
    transaction_timeout_ms: Annotated[int, F("int32")] = 0
    producer_id: Annotated[int, F("int64", "3+")] = -1  # -1: a new one
    producer_epoch: Annotated[int, F("int16", "3+")] = -1
    enable2_pc: Annotated[bool, F("bool", "6+")] = False
    keep_prepared_txn: Annotated[bool, F("bool", "6+")] = False


class InitProducerIdResponse(Message):
    """The id and the epoch to use."""

    API_KEY = InitProducerIdRequest.API_KEY
    VERSIONS = "0-6"
    FLEXIBLE = "2+"

    throttle_time_ms: Annotated[int, F("int32")] = 0
    error_code: Annotated[int, F("int16")] = 0
    producer_id: Annotated[int, F("int64")] = -1
    producer_epoch: Annotated[int, F("int16")] = 0
    ongoing_txn_producer_id: Annotated[int, F("int64", "6+")] = -1
    ongoing_txn_producer_epoch: Annotated[int, F("int16", "6+")] = -1
