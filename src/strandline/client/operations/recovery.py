"""Lets partitions whose logs are lost begin anew with what buckets have.

How:    two requests to the controller: a forecast, for which it reads the buckets, and then the
        declaration with the logs and the offsets of that forecast.
Source: decision 0067."""

from collections.abc import Sequence

from strandline.client.cluster import Client
from strandline.client.operations.losses import REFUSED
from strandline.model.ids import BrokerId
from strandline.protocol.messages.recover_partition import (
    RecoverPartitionRequest,
    RecoverPartitionResponse,
    WantedBucket,
)


def forecast_recovery(
    client: Client,
    topic: str,
    partition: int,
    *,
    brokers: Sequence[BrokerId],
    grant: int,
    buckets: Sequence[str],
    accepts_missing: bool,
) -> RecoverPartitionResponse:
    """What the partition would begin with. Raises ApiError with the reason of a refusal, and
    ClientError soon if too few of the controller's voters answer."""
    request = RecoverPartitionRequest(
        topic=topic,
        partition=partition,
        grant=grant,
        broker_ids=list(brokers),
        buckets=[WantedBucket(one) for one in buckets],
        accepts_missing=accepts_missing,
        validate_only=True,
    )
    return client.ask_controller_soon(request, RecoverPartitionResponse, REFUSED)


def recover_partition(
    client: Client,
    topic: str,
    partition: int,
    *,
    brokers: Sequence[BrokerId],
    forecast: RecoverPartitionResponse,
    accepts_missing: bool,
    by: str,
) -> RecoverPartitionResponse:
    """Begin it anew, as in the forecast. Raises ApiError if that no longer holds."""
    request = RecoverPartitionRequest(
        topic=topic,
        partition=partition,
        grant=forecast.grant - 1,
        broker_ids=list(brokers),
        buckets=[
            WantedBucket(one.bucket, one.start_offset, one.end_offset)
            for one in forecast.buckets
            if one.is_wanted
        ],
        accepts_missing=accepts_missing,
        logs=forecast.logs,
        by=by,
    )
    return client.ask_controller(request, RecoverPartitionResponse, REFUSED)
