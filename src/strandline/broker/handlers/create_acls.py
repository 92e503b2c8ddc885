"""CreateAcls: adds rules of access.

Source: KIP-140, KIP-290."""

from strandline.base.errors import ApiError
from strandline.broker.access.acl_messages import rule_of
from strandline.broker.access.requirements import require_rules
from strandline.broker.context import RequestContext
from strandline.controller.rule_commands import CreateRules, RuleResults
from strandline.model.access import Operation
from strandline.protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)


async def handle(request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse:
    """Have the controller add each rule, or refuse it."""
    services = context.services
    try:
        require_rules(context, Operation.ALTER)
        command = CreateRules(tuple(map(rule_of, request.creations)))
        answer = await services.obtain(command, RuleResults)
    except ApiError as error:
        refused = AclCreationResult(error.code, error.message)
        return CreateAclsResponse(results=[refused] * len(request.creations))
    return CreateAclsResponse(
        results=[AclCreationResult(one.error_code, one.message) for one in answer.results]
    )
