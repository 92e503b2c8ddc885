"""Shows, pauses and resumes the balancer of replicas.

Source: docs/decisions/0010-the-balancer.md."""

from strandline.client.cluster import Client
from strandline.protocol.messages.describe_balance import (
    DescribeBalanceRequest,
    DescribeBalanceResponse,
)

ENABLE = "balancer.enable"


def describe_balance(client: Client, deadline_ms: int | None = None) -> DescribeBalanceResponse:
    """What moves, what waits, and why."""
    return client.ask_controller(
        DescribeBalanceRequest(), DescribeBalanceResponse, "the balancer", deadline_ms
    )


def describe_balance_soon(client: Client) -> DescribeBalanceResponse:
    """The same; see `Client.ask_controller_soon`."""
    return client.ask_controller_soon(
        DescribeBalanceRequest(), DescribeBalanceResponse, "the balancer"
    )
