"""SyncGroup: a member gets its assignment; the group's leader sends all assignments.

Why:    a coordinator that still reads its log has lost the rebalance under way: the member joins
        again. The answer is not COORDINATOR_LOAD_IN_PROGRESS, which clients do not expect here
        (aiokafka stops).
Source: KIP-559 (protocol type and name, from version 5);
        Kafka's `GroupCoordinator.handleSyncGroup`."""

from strandline.broker.context import RequestContext
from strandline.coordinator.answers import SyncAnswer
from strandline.coordinator.requests import SyncGroup
from strandline.protocol.errors import Error
from strandline.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


async def handle(request: SyncGroupRequest, context: RequestContext) -> SyncGroupResponse:
    """Ask the group's coordinator; the answer waits until the leader has assigned."""
    coordinator = context.services.coordinator
    answer = await coordinator.ask_unless_loading(
        SyncGroup(
            token=coordinator.new_token(),
            group=request.group_id,
            generation=request.generation_id,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignments=tuple((one.member_id, one.assignment) for one in request.assignments),
        )
    )
    if answer is None:
        return SyncGroupResponse(error_code=Error.REBALANCE_IN_PROGRESS)
    assert isinstance(answer, SyncAnswer)
    return SyncGroupResponse(
        error_code=answer.error_code,
        protocol_type=answer.protocol_type,
        protocol_name=answer.protocol_name,
        assignment=answer.assignment,
    )
