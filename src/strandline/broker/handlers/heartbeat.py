"""Heartbeat: a group member is alive, and learns whether it must join again.

Why:    a coordinator that still reads its log cannot tell whether it knows the member. Clients do
        not expect COORDINATOR_LOAD_IN_PROGRESS here: aiokafka stops for good. So the answer is
        NONE; the next heartbeat or commit gets the true one.
Source: Kafka's classic group protocol (`GroupCoordinator.handleHeartbeat`)."""

from strandline.broker.context import RequestContext
from strandline.coordinator.answers import HeartbeatAnswer
from strandline.coordinator.requests import Heartbeat
from strandline.protocol.errors import Error
from strandline.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


async def handle(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
    """Tell the group's coordinator."""
    coordinator = context.services.coordinator
    answer = await coordinator.ask_unless_loading(
        Heartbeat(
            token=coordinator.new_token(),
            group=request.group_id,
            generation=request.generation_id,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
        )
    )
    if answer is None:
        return HeartbeatResponse(error_code=Error.NONE)
    assert isinstance(answer, HeartbeatAnswer)
    return HeartbeatResponse(error_code=answer.error_code)
