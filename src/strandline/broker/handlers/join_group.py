"""JoinGroup: a client becomes a member of a group, again or for the first time.

Why:    the answer waits until all members have joined, or time is up; the request parks meanwhile.
        A member's metadata stays in memory as long as its session. More than the log takes of a
        whole group is refused at once: the group could never become stable.
Source: KIP-394 (member ids first, from version 4), KIP-559, KIP-814 (from version 9)."""

from strandline.base.errors import ApiError
from strandline.broker.context import RequestContext
from strandline.coordinator.answers import JoinAnswer
from strandline.coordinator.requests import JoinGroup
from strandline.protocol.errors import Error
from strandline.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)

MEMBER_IDS_SINCE_VERSION = 4
NULL_PROTOCOL_SINCE_VERSION = 7
SKIP_ASSIGNMENT_SINCE_VERSION = 9


async def handle(request: JoinGroupRequest, context: RequestContext) -> JoinGroupResponse:
    """Ask the group's coordinator."""
    version = context.api_version
    coordinator = context.services.coordinator
    metadata_bytes = sum(len(one.name) + len(one.metadata) for one in request.protocols)
    if metadata_bytes > (limit := coordinator.group_bytes_max):
        raise ApiError(
            Error.MESSAGE_TOO_LARGE,
            f"a member with {metadata_bytes} bytes of metadata: the group could have {limit}",
        )
    answer = await coordinator.ask(
        JoinGroup(
            token=coordinator.new_token(),
            group=request.group_id,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            client_id=context.client_id or "",
            client_host=context.client_host,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=tuple((one.name, one.metadata) for one in request.protocols),
            knows_member_ids=version >= MEMBER_IDS_SINCE_VERSION,
            may_skip_assignment=version >= SKIP_ASSIGNMENT_SINCE_VERSION,
        )
    )
    assert isinstance(answer, JoinAnswer)
    protocol_name = answer.protocol_name
    if protocol_name is None and version < NULL_PROTOCOL_SINCE_VERSION:
        protocol_name = ""
    return JoinGroupResponse(
        error_code=answer.error_code,
        generation_id=answer.generation,
        protocol_type=answer.protocol_type,
        protocol_name=protocol_name,
        leader=answer.leader,
        skip_assignment=answer.skip_assignment,
        member_id=answer.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=member.metadata,
            )
            for member in answer.members
        ],
    )
