"""DescribeAcls: the rules of access that fit a filter.

Source: KIP-140, KIP-290."""

from itertools import groupby

from strandline.base.errors import ApiError
from strandline.broker.access.acl_messages import filter_of
from strandline.broker.access.requirements import require_rules
from strandline.broker.context import RequestContext
from strandline.model.access import Operation, Rule
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


async def handle(request: DescribeAclsRequest, context: RequestContext) -> DescribeAclsResponse:
    """The rules, in their order; an error if no rules are enforced."""
    services = context.services
    try:
        require_rules(context, Operation.DESCRIBE)
    except ApiError as error:
        return DescribeAclsResponse(error_code=error.code, error_message=error.message)
    wanted = filter_of(request)
    if wanted.is_unknown:
        return DescribeAclsResponse(
            error_code=Error.INVALID_REQUEST,
            error_message="a field of the filter has a value that this release does not know",
        )
    rules = sorted(one for one in services.cluster.access.rules if wanted.fits(one))
    return DescribeAclsResponse(
        error_message=None,
        resources=[
            DescribeAclsResource(
                resource_type=kind,
                resource_name=name,
                pattern_type=pattern,
                acls=[
                    AclDescription(one.principal, one.host, one.operation, one.permission)
                    for one in same
                ],
            )
            for (kind, pattern, name), same in groupby(rules, key=_resource)
        ],
    )


def _resource(rule: Rule) -> tuple[int, int, str]:
    return (rule.kind, rule.pattern, rule.name)
