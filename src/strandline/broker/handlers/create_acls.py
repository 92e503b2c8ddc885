"""CreateAcls: there is no authoriser, so an access rule would protect nothing.

Source: KIP-140; `broker.no_authoriser`."""

from strandline.broker.context import RequestContext
from strandline.broker.no_authoriser import NO_AUTHORISER
from strandline.protocol.errors import Error
from strandline.protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)


async def handle(request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse:
    """Refuse each rule, as Kafka does without an authoriser."""
    return CreateAclsResponse(
        results=[
            AclCreationResult(Error.SECURITY_DISABLED, NO_AUTHORISER) for _ in request.creations
        ]
    )
