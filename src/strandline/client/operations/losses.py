"""Declares replicas of a partition lost, and lists declared losses.

How:    two requests to the controller: a forecast, and then the declaration with the logs of that
        forecast. The controller refuses if the logs have changed meanwhile. Without a controller
        there is an estimate, from the logs that answer this client.
Source: decision 0027."""

from collections.abc import Sequence

from strandline.base.errors import ApiError, StrandlineError
from strandline.client.cluster import Client
from strandline.client.errors import ClientError, NotOfferedError, refusal
from strandline.client.operations.survivors import ReplicaLogs
from strandline.controller.arbitration.survivors import GroupStatus
from strandline.model.ids import BrokerId
from strandline.protocol.errors import is_retriable
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


def estimate_loss(found: ReplicaLogs) -> DeclareLostResponse | None:
    """What the controller would forecast if the logs that answer here are all that are left. None
    if it would refuse, because nothing need be lost or no log is left."""
    judged = found.judge()
    if judged.standing is not GroupStatus.SHORT or judged.best is None:
        return None
    if any(one in found.heard and one not in found.answers for one in found.hosts):
        return None  # The controller waits for its log.
    return DeclareLostResponse(
        grant=1 + max(one.grant for one in found.answers.values()),
        leader_id=judged.best,
        committed_offset=judged.committed,
        log_end_offset=judged.end,
    )


def is_without_controller(error: StrandlineError) -> bool:
    """Whether a forecast failed because no controller answered, not because it refused."""
    if isinstance(error, ApiError):
        return is_retriable(error.code)
    return isinstance(error, ClientError) and not isinstance(error, NotOfferedError)


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
