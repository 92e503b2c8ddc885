"""IsolateBroker: cuts this broker off for a while, or ends that; it comes back by itself, too.

Source: docs/decisions/0019-drills.md."""

from strandline.broker.context import RequestContext
from strandline.protocol.messages.isolate_broker import (
    IsolateBrokerRequest,
    IsolateBrokerResponse,
)


async def handle(request: IsolateBrokerRequest, context: RequestContext) -> IsolateBrokerResponse:
    """Begin the isolation, or end it; raises ApiError with the reason if a begin is refused."""
    isolation = context.services.isolation
    if request.ends:
        return IsolateBrokerResponse(was_in_drill=isolation.end())
    does = isolation.check if request.validate_only else isolation.begin
    does(delay_ms=request.delay_ms, duration_ms=request.duration_ms)
    return IsolateBrokerResponse()
