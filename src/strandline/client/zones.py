"""Zones and regions: what is down, and what a person says of it.

Source: docs/decisions/0018-outages.md."""

from strandline.client.cluster import Client
from strandline.client.errors import refusal
from strandline.model.cluster import NO_END_MS, Ruling
from strandline.protocol.messages.describe_zones import (
    DescribedZone,
    DescribeZonesRequest,
    DescribeZonesResponse,
)
from strandline.protocol.messages.rule_zone import RuleZoneRequest, RuleZoneResponse


def describe_zones(client: Client) -> DescribeZonesResponse:
    """What the controller thinks of zones, regions and brokers."""

    def look(until: int) -> DescribeZonesResponse:
        controller = client.find_controller(deadline_ms=until)
        answer = client.ask(
            controller, DescribeZonesRequest(), DescribeZonesResponse, deadline_ms=until
        )
        if answer.error_code:
            raise refusal(answer.error_code, "the zones", answer.error_message)
        return answer

    return client.attempt(look)


def rule_zone(
    client: Client, zone: DescribedZone, ruling: Ruling, *, for_ms: int = NO_END_MS
) -> RuleZoneResponse:
    """Hold, release or give up a zone or region, for so long. Raises ClientError with what stands
    against it."""
    request = RuleZoneRequest(zone.region, zone.zone, ruling, for_ms)

    def ask(until: int) -> RuleZoneResponse:
        controller = client.find_controller(deadline_ms=until)
        answer = client.ask(controller, request, RuleZoneResponse, deadline_ms=until)
        if answer.error_code:
            raise refusal(answer.error_code, zone.name, answer.error_message)
        return answer

    return client.attempt(ask)
