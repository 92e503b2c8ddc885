"""DeleteAcls: there is no authoriser, so there are no access rules to remove.

Source: KIP-140; `broker.no_authoriser`."""

from strandline.broker.context import RequestContext
from strandline.broker.no_authoriser import NO_AUTHORISER
from strandline.protocol.errors import Error
from strandline.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


async def handle(request: DeleteAclsRequest, context: RequestContext) -> DeleteAclsResponse:
    """Refuse each filter, as Kafka does without an authoriser."""
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(Error.SECURITY_DISABLED, NO_AUTHORISER) for _ in request.filters
        ]
    )
