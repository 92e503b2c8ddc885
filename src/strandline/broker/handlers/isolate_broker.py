"""IsolateBroker: cuts this broker off for a while; it comes back by itself.

Source: docs/decisions/0019-drills.md."""

from strandline.broker.context import RequestContext
from strandline.protocol.messages.isolate_broker import (
    IsolateBrokerRequest,
    IsolateBrokerResponse,
)


async def handle(request: IsolateBrokerRequest, context: RequestContext) -> IsolateBrokerResponse:
    """Begin the isolation; raises ApiError with the reason if that is refused."""
    isolation = context.services.isolation
    does = isolation.check if request.validate_only else isolation.begin
    does(delay_ms=request.delay_ms, duration_ms=request.duration_ms)
    return IsolateBrokerResponse()
