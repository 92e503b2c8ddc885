"""Heartbeat: a member is alive, and learns whether it must join again.

Source: Kafka's classic group protocol."""

from strandline.broker.context import RequestContext
from strandline.coordinator.answers import HeartbeatAnswer
from strandline.coordinator.requests import Heartbeat
from strandline.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


async def handle(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
    """Tell the group's coordinator."""
    coordinator = context.services.coordinator
    answer = await coordinator.ask(
        Heartbeat(
            token=coordinator.new_token(),
            group=request.group_id,
            generation=request.generation_id,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
        )
    )
    assert isinstance(answer, HeartbeatAnswer)
    return HeartbeatResponse(error_code=answer.error_code)
