"""ListGroups: the groups that this broker coordinates; tools ask every broker.

Source: KIP-518 (states, from version 4), KIP-848 (types, from version 5)."""

from strandline.broker.context import RequestContext
from strandline.model.access import CLUSTER_NAME, Kind, Operation
from strandline.protocol.errors import Error
from strandline.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)


async def handle(request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse:
    """List the requested groups; COORDINATOR_LOAD_IN_PROGRESS if some are still loading."""
    states = {state.lower() for state in request.states_filter}
    types = {one.lower() for one in request.types_filter}
    sees_all = context.sees(Operation.DESCRIBE, Kind.CLUSTER, CLUSTER_NAME)
    response = ListGroupsResponse()
    for shard in context.services.coordinator.shards:
        if shard.error is not Error.NONE:
            if shard.error is Error.COORDINATOR_LOAD_IN_PROGRESS:
                response.error_code = shard.error
            continue
        response.groups += [
            ListedGroup(
                group_id=one.group,
                protocol_type=one.protocol_type,
                group_state=one.state,
                group_type=one.type,
            )
            for one in shard.coordinator.list_groups()
            if (not states or one.state.lower() in states)
            and (not types or one.type.lower() in types)
            and (sees_all or context.sees(Operation.DESCRIBE, Kind.GROUP, one.group))
        ]
    return response
