"""Declares replicas of a partition lost, and lists declared losses.

How:    two requests to the controller: a forecast, and then the declaration with the logs of that
        forecast. The controller refuses if the logs have changed meanwhile.
Source: decision 0027."""

from collections.abc import Sequence

from strandline.client.cluster import Client
from strandline.client.errors import NotOfferedError, refusal
from strandline.model.ids import BrokerId
from strandline.protocol.messages.declare_lost import DeclareLostRequest, DeclareLostResponse
from strandline.protocol.messages.describe_losses import (
    DeclaredLoss,
    DescribeLossesRequest,
    DescribeLossesResponse,
)

REFUSED = "no loss was declared"
"""How refusals begin; the controller names the partition."""


def forecast_loss(
    client: Client, topic: str, partition: int, *, brokers: Sequence[BrokerId], grant: int
) -> DeclareLostResponse:
    """Forecast the declaration. Raises ApiError with the reason of a refusal, and ClientError soon
    if too few of the controller's voters answer."""
    request = DeclareLostRequest(
        topic=topic,
        partition=partition,
        grant=grant,
        broker_ids=list(brokers),
        validate_only=True,
    )
    return client.ask_controller_soon(request, DeclareLostResponse, REFUSED)


def declare_lost(
    client: Client,
    topic: str,
    partition: int,
    *,
    brokers: Sequence[BrokerId],
    forecast: DeclareLostResponse,
    by: str,
) -> DeclareLostResponse:
    """Declare the loss of this forecast. Raises ApiError if the forecast no longer holds."""
    request = DeclareLostRequest(
        topic=topic,
        partition=partition,
        grant=forecast.grant - 1,
        broker_ids=list(brokers),
        logs=forecast.logs,
        by=by,
    )
    return client.ask_controller(request, DeclareLostResponse, REFUSED)


def describe_losses(client: Client, topics: Sequence[str]) -> list[DeclaredLoss]:
    """All losses ever declared for topics; empty if the cluster does not support that."""
    request = DescribeLossesRequest(topics=list(topics))

    def look(until: int) -> DescribeLossesResponse:
        answer = client.ask_best_informed(request, DescribeLossesResponse, deadline_ms=until)
        if answer.error_code:
            raise refusal(answer.error_code, "declared losses")
        return answer

    try:
        return client.attempt(look).losses
    except NotOfferedError:
        return []
