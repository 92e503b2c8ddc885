"""LeaveGroup: members leave by themselves, or an operator removes them.

Source: KIP-345 (several members, from version 3)."""

from strandline.broker.context import RequestContext
from strandline.coordinator.answers import LeaveAnswer
from strandline.coordinator.requests import LeaveGroup, LeavingMember
from strandline.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)

MANY_MEMBERS_SINCE_VERSION = 3


async def handle(request: LeaveGroupRequest, context: RequestContext) -> LeaveGroupResponse:
    """Tell the group's coordinator. The one member of an old request answers for all of it."""
    has_many = context.api_version >= MANY_MEMBERS_SINCE_VERSION
    if has_many:
        members = tuple(
            LeavingMember(one.member_id, one.group_instance_id) for one in request.members
        )
    else:
        members = (LeavingMember(request.member_id),)
    coordinator = context.services.coordinator
    answer = await coordinator.ask(
        LeaveGroup(token=coordinator.new_token(), group=request.group_id, members=members)
    )
    assert isinstance(answer, LeaveAnswer)
    if not has_many:
        own = answer.members[0].error_code if answer.members else 0
        return LeaveGroupResponse(error_code=answer.error_code or own)
    return LeaveGroupResponse(
        error_code=answer.error_code,
        members=[
            MemberResponse(
                member_id=one.member_id,
                group_instance_id=one.instance_id,
                error_code=one.error_code,
            )
            for one in answer.members
        ],
    )
