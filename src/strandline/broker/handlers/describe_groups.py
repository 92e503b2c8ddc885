"""DescribeGroups: state, members and their work.

How:    a group that does not exist is "Dead", as Kafka has it; from version 6 it is also
        GROUP_ID_NOT_FOUND.
Source: KIP-1043 (version 6)."""

from strandline.base.errors import ApiError
from strandline.broker.context import RequestContext, Services
from strandline.broker.no_authoriser import GROUP_OPERATIONS
from strandline.coordinator.group import GroupState
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
    groups = [
        _describe(context.services, one, context.api_version)
        for one in dict.fromkeys(request.groups)
    ]
    if request.include_authorized_operations:
        for group in groups:
            if group.error_code == Error.NONE:
                group.authorized_operations = GROUP_OPERATIONS
    return DescribeGroupsResponse(groups=groups)


def _describe(services: Services, group: str, version: int) -> DescribedGroup:
    try:
        found = services.coordinator.shard_of(group).coordinator.describe(group)
    except ApiError as error:
        return DescribedGroup(group_id=group, error_code=error.code, error_message=error.message)
    if found is None:
        missing = DescribedGroup(group_id=group, group_state=GroupState.DEAD.value)
        if version >= NOT_FOUND_SINCE_VERSION:
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
