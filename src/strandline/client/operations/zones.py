"""Zones and regions: outages, and the rulings of operators.

Source: docs/decisions/0018-outages.md."""

from strandline.base.json_value import Json
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


def describe_zones_soon(client: Client) -> DescribeZonesResponse:
    """The same; see `Client.ask_controller_soon`."""
    return client.ask_controller_soon(DescribeZonesRequest(), DescribeZonesResponse, "the zones")


def rule_zone(
    client: Client, zone: DescribedZone, ruling: Ruling, *, for_ms: int = NO_END_MS
) -> RuleZoneResponse:
    """Hold, release or give up a zone or region, for so long. Raises ApiError with what stands
    against it."""
    request = RuleZoneRequest(zone.region, zone.zone, ruling, for_ms)
    return client.ask_controller(request, RuleZoneResponse, zone.name)


def zones_json(found: DescribeZonesResponse) -> dict[str, Json]:
    """As JSON; times in ms, None for unknown values."""
    return {
        "settled": not found.is_unsettled,
        "zones": [
            {
                "name": one.name,
                "level": "zone" if one.zone else "region",
                "region": one.region or None,
                "down": one.is_down,
                "held": one.is_held,
                "down_ms": None if one.down_ms < 0 else one.down_ms,
                "ruling": one.ruling or None,
                "until_ms": None if one.ruling_until_ms < 0 else one.ruling_until_ms,
                "brokers": list(one.brokers),
                "silent": list(one.silent),
                "planned": list(one.planned),
                "waiting": one.waiting_count,
                "low_percent": one.low_percent or None,
                "high_percent": one.high_percent or None,
            }
            for one in found.zones
        ],
        "happenings": [
            {
                "class": one.kind,
                "subject": one.subject,
                "text": one.text,
                "lasted_ms": one.lasted_ms,
            }
            for one in found.happenings
        ],
        "brokers": [
            {
                "id": one.broker_id,
                "verdict": one.verdict,
                "heard_from": list(one.heard_from),
                "not_heard_from": list(one.not_heard_from),
            }
            for one in found.brokers
        ],
    }
