"""DescribeAcls: there is no authoriser, so there are no access rules to list.

Source: KIP-140; `broker.no_authoriser`."""

from strandline.broker.context import RequestContext
from strandline.broker.no_authoriser import NO_AUTHORISER
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


async def handle(request: DescribeAclsRequest, context: RequestContext) -> DescribeAclsResponse:
    """Refuse, as Kafka does without an authoriser."""
    return DescribeAclsResponse(error_code=Error.SECURITY_DISABLED, error_message=NO_AUTHORISER)
