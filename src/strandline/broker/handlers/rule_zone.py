"""RuleZone: an operator holds, releases or gives up a zone or region.

Source: decision 0018."""

from strandline.base.errors import ApiError
from strandline.broker.context import RequestContext
from strandline.controller.outage_commands import DomainAnswer, RuleDomain
from strandline.model.cluster import NO_END_MS, Ruling
from strandline.protocol.errors import Error
from strandline.protocol.messages.rule_zone import RuleZoneRequest, RuleZoneResponse

FOR_MS_MAX = 10 * 365 * 24 * 60 * 60 * 1_000
_KNOWN = [one.value for one in Ruling if one]


async def handle(request: RuleZoneRequest, context: RequestContext) -> RuleZoneResponse:
    """Record the ruling; raises ApiError with the reason if that is refused."""
    if request.ruling not in _KNOWN or not (
        request.for_ms == NO_END_MS or 0 < request.for_ms <= FOR_MS_MAX
    ):
        text = f"a ruling is one of {', '.join(_KNOWN)}, for 1 to {FOR_MS_MAX} ms, or -1"
        raise ApiError(Error.INVALID_REQUEST, text)
    until_ms = NO_END_MS
    if request.for_ms != NO_END_MS:
        until_ms = context.services.clock.wall_ms() + request.for_ms
    domain = (request.region, request.zone) if request.zone else (request.region,)
    command = RuleDomain(domain, Ruling(request.ruling), until_ms)
    outage = (await context.services.obtain(command, DomainAnswer)).outage
    return RuleZoneResponse(
        is_down=outage.is_down, ruling=outage.ruling, ruling_until_ms=outage.until_ms
    )
