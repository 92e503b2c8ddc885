"""DeleteAcls: removes the rules of access that filters name.

Source: KIP-140, KIP-290."""

from strandline.base.errors import ApiError
from strandline.broker.access.acl_messages import filter_of, removed_rule
from strandline.broker.access.requirements import require_rules
from strandline.broker.context import RequestContext
from strandline.controller.rule_commands import DeleteRules, RuleResults
from strandline.model.access import Operation
from strandline.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


async def handle(request: DeleteAclsRequest, context: RequestContext) -> DeleteAclsResponse:
    """Have the controller remove them; the removed rules of each filter."""
    services = context.services
    try:
        require_rules(context, Operation.ALTER)
        command = DeleteRules(tuple(map(filter_of, request.filters)))
        answer = await services.obtain(command, RuleResults)
    except ApiError as error:
        refused = DeleteAclsFilterResult(error.code, error.message)
        return DeleteAclsResponse(filter_results=[refused] * len(request.filters))
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(
                one.error_code, one.message, list(map(removed_rule, one.removed))
            )
            for one in answer.results
        ]
    )
