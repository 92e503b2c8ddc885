"""The balancer of replicas: looked at, paused, resumed.

Source: docs/decisions/0010-the-balancer.md."""

from strandline.client.cluster import Client
from strandline.client.errors import refusal
from strandline.protocol.messages.describe_balance import (
    DescribeBalanceRequest,
    DescribeBalanceResponse,
)

ENABLE = "balancer.enable"


def describe_balance(client: Client) -> DescribeBalanceResponse:
    """What moves, what waits, and why."""

    def look(until: int) -> DescribeBalanceResponse:
        controller = client.find_controller(deadline_ms=until)
        answer = client.ask(
            controller, DescribeBalanceRequest(), DescribeBalanceResponse, deadline_ms=until
        )
        if answer.error_code:
            raise refusal(answer.error_code, "the balancer", answer.error_message)
        return answer

    return client.attempt(look)
