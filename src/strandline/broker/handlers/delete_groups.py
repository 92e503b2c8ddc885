"""DeleteGroups: deletes groups without members, with all their committed offsets.

Source: KIP-229."""

import asyncio

from strandline.base.errors import ApiError
from strandline.broker.context import RequestContext
from strandline.coordinator.answers import DeleteAnswer
from strandline.coordinator.requests import DeleteGroup
from strandline.model.access import Kind, Operation
from strandline.protocol.errors import Error, message_of
from strandline.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


async def handle(request: DeleteGroupsRequest, context: RequestContext) -> DeleteGroupsResponse:
    """Delete each group for itself."""
    names = list(dict.fromkeys(request.groups_names))
    codes = await asyncio.gather(*(_delete(context, name) for name in names))
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(
                group_id=name,
                error_code=code,
                error_message=None if code == Error.NONE else message_of(code),
            )
            for name, code in zip(names, codes, strict=True)
        ]
    )


async def _delete(context: RequestContext, group: str) -> int:
    if not context.may(Operation.DELETE, Kind.GROUP, group):
        return Error.GROUP_AUTHORIZATION_FAILED
    coordinator = context.services.coordinator
    try:
        answer = await coordinator.ask(DeleteGroup(token=coordinator.new_token(), group=group))
    except ApiError as error:
        return error.code
    assert isinstance(answer, DeleteAnswer)
    return answer.error_code
