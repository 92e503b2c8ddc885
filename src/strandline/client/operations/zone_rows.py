"""Zones, regions and outages, as text.

Why:    `strandline zone status` and the console describe an outage in the same words.
Source: docs/decisions/0018-outages.md; docs/operating/outages.md."""

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from strandline.controller.outages.voting import CLASSES
from strandline.protocol.messages.describe_zones import DescribedZone, DescribeZonesResponse

CALM = "All zones and regions are up."
UNLABELLED = "no broker has a region or zone label: set them with `strandline broker label`"
SAID = {"hold": "held by hand", "release": "released", "lost": "declared lost"}
"""{ruling: its text}"""


@dataclass(frozen=True, slots=True)
class ZoneRow:
    """A zone or a region. `heard`: heard brokers of those that count; `marks`: empty for none."""

    name: str
    level: str
    state: str
    heard: str
    marks: str
    silent: Sequence[int]
    repair: str
    waiting: int


def rows_of(found: DescribeZonesResponse) -> list[ZoneRow]:
    """One for each zone and region."""
    regions = {one.region: one for one in found.zones if not one.zone}
    return [_row(one, regions.get(one.region, one)) for one in found.zones]


def is_calm(found: DescribeZonesResponse) -> bool:
    """Whether nothing is down or cut off; some partitions may still be weakened or without a
    leader."""
    return all(one.kind in CLASSES for one in found.happenings)


def heard_lines(found: DescribeZonesResponse) -> Iterator[str]:
    """Places that hear a broker, and places that do not, for brokers not heard everywhere."""
    for seen in found.brokers:
        if seen.not_heard_from:
            heard = ", ".join(seen.heard_from) or "nowhere"
            away = ", ".join(seen.not_heard_from)
            yield f"broker {seen.broker_id}: its heartbeats reach {heard}; missing in {away}"


def level_of(zone: DescribedZone) -> str:
    """Zone or region."""
    return "zone" if zone.zone else "region"


def time_text(wall_ms: int) -> str:
    """A moment, to the minute."""
    moment = datetime.datetime.fromtimestamp(wall_ms / 1_000, datetime.UTC)
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _row(zone: DescribedZone, region: DescribedZone) -> ZoneRow:
    count = len(zone.brokers) - len(zone.planned)
    return ZoneRow(
        name=zone.name,
        level=level_of(zone),
        state=f"down for {max(0, zone.down_ms) // 60_000} min" if zone.is_down else "up",
        heard=f"{count - len(zone.silent)}/{count}",
        marks=f"{zone.low_percent}-{zone.high_percent} %" if zone.low_percent else "",
        silent=zone.silent,
        repair=_repair(zone, region),
        waiting=zone.waiting_count,
    )


def _repair(zone: DescribedZone, region: DescribedZone) -> str:
    """Whether it is held, and by which ruling: the region's applies if the zone has none."""
    ruled = zone if zone.ruling else region
    where = "" if ruled is zone else f" with {level_of(region)} {region.name}"
    if ruled.ruling:
        text = SAID.get(ruled.ruling, ruled.ruling) + where
        return text + (f" until {time_text(ruled.ruling_until_ms)}" * (ruled.ruling_until_ms >= 0))
    if not zone.is_held:
        return "as usual"
    return "held until it returns" if zone.is_down else f"held{where}"
