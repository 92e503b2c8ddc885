"""Turns the answer about zones, regions and outages into text.

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
    """A zone or a region. `heard`: "heard/counted" brokers, without those in maintenance. `marks`:
    "low-high %", empty if unknown. `waiting`: partitions with a replica on a silent broker
    there."""

    name: str
    level: str
    state: str
    heard: str
    marks: str
    silent: Sequence[int]
    repair: str
    waiting: int


def rows_of(found: DescribeZonesResponse) -> list[ZoneRow]:
    """One row for each zone and region."""
    regions = {one.region: one for one in found.zones if not one.zone}
    return [_row(one, regions.get(one.region, one)) for one in found.zones]


def is_calm(found: DescribeZonesResponse) -> bool:
    """Whether nothing is reported, except alarms about voters and leaders."""
    return all(one.kind in CLASSES for one in found.happenings)


def heard_lines(found: DescribeZonesResponse) -> Iterator[str]:
    """A line for each broker that is not heard everywhere: which places hear it, and which do
    not."""
    for seen in found.brokers:
        if seen.not_heard_from:
            heard = ", ".join(seen.heard_from) or "nowhere"
            away = ", ".join(seen.not_heard_from)
            yield f"broker {seen.broker_id}: its heartbeats reach {heard}; missing in {away}"


def level_of(zone: DescribedZone) -> str:
    """Whether it is a zone or a region, as a word."""
    return "zone" if zone.zone else "region"


def time_text(wall_ms: int) -> str:
    """A date and time as text, in UTC, to the minute."""
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
    """The state of repair there. The operator's ruling on the region applies if the zone has
    none."""
    ruled = zone if zone.ruling else region
    where = "" if ruled is zone else f" with {level_of(region)} {region.name}"
    if ruled.ruling:
        text = SAID.get(ruled.ruling, ruled.ruling) + where
        return text + (f" until {time_text(ruled.ruling_until_ms)}" * (ruled.ruling_until_ms >= 0))
    if not zone.is_held:
        return "as usual"
    return "held until it returns" if zone.is_down else f"held{where}"
