"""Zones and regions: what is down, and what a person says of it.

Source: docs/decisions/0018-outages.md."""

from strandline.client.cluster import Client
from strandline.model.cluster import NO_END_MS, Ruling
from strandline.protocol.messages.describe_zones import (
    DescribedZone,
    DescribeZonesRequest,
    DescribeZonesResponse,
)
from strandline.protocol.messages.rule_zone import RuleZoneRequest, RuleZoneResponse


def describe_zones(client: Client) -> DescribeZonesResponse:
    """What the controller thinks of zones, regions and brokers."""
    return client.ask_controller(DescribeZonesRequest(), DescribeZonesResponse, "the zones")


def rule_zone(
    client: Client, zone: DescribedZone, ruling: Ruling, *, for_ms: int = NO_END_MS
) -> RuleZoneResponse:
    """Hold, release or give up a zone or region, for so long. Raises ApiError with what stands
    against it."""
    request = RuleZoneRequest(zone.region, zone.zone, ruling, for_ms)
    return client.ask_controller(request, RuleZoneResponse, zone.name)
