"""DescribeGroups: state, members and their work.

How:    a group that does not exist is "Dead", as Kafka has it; from version 6 it is also
        GROUP_ID_NOT_FOUND.
Source: KIP-1043 (version 6)."""

from strandline.base.errors import ApiError
from strandline.broker.access.requirements import REFUSED
from strandline.broker.context import RequestContext
from strandline.coordinator.group import GroupState
from strandline.model.access import Kind, Operation
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

NOT_FOUND_SINCE_VERSION = 6


async def handle(request: DescribeGroupsRequest, context: RequestContext) -> DescribeGroupsResponse:
    """Describe each group."""
    groups = [_describe(context, one) for one in dict.fromkeys(request.groups)]
    if request.include_authorized_operations:
        for group in groups:
            if group.error_code == Error.NONE:
                group.authorized_operations = context.services.access.operations(
                    context.session, Kind.GROUP, group.group_id
                )
    return DescribeGroupsResponse(groups=groups)


def _describe(context: RequestContext, group: str) -> DescribedGroup:
    try:
        if not context.may(Operation.DESCRIBE, Kind.GROUP, group):
            raise ApiError(Error.GROUP_AUTHORIZATION_FAILED, REFUSED)
        found = context.services.coordinator.shard_of(group).coordinator.describe(group)
    except ApiError as error:
        return DescribedGroup(group_id=group, error_code=error.code, error_message=error.message)
    if found is None:
        missing = DescribedGroup(group_id=group, group_state=GroupState.DEAD.value)
        if context.api_version >= NOT_FOUND_SINCE_VERSION:
            missing.error_code = Error.GROUP_ID_NOT_FOUND
            missing.error_message = f"Group {group} not found."
        return missing
    return DescribedGroup(
        group_id=group,
        group_state=found.state,
        protocol_type=found.protocol_type,
        protocol_data=found.protocol,
        members=[
            DescribedGroupMember(
                member_id=one.member_id,
                group_instance_id=one.instance_id,
                client_id=one.client_id,
                client_host=one.client_host,
                member_metadata=one.metadata,
                member_assignment=one.assignment,
            )
            for one in found.members
        ],
    )
