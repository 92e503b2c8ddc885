"""Turns the answer about zones, regions and outages into text.

Why:    `strandline zone status` and the console describe an outage in the same words.
Source: docs/decisions/0018-outages.md; docs/operating/outages.md."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from strandline.client.operations.moments import time_text
from strandline.controller.outages.happenings import Kind, brokers_text
from strandline.controller.outages.voting import CLASSES
from strandline.model.ids import BrokerId
from strandline.protocol.messages.describe_zones import DescribedZone, DescribeZonesResponse

ELSEWHERE = (*CLASSES, Kind.TIERED_BUCKETS, Kind.SETTINGS)
"""The classes of reports that are not about places."""
CALM = "All zones and regions are up."
UNSETTLED = (
    "The controller began to lead a moment ago: it does not know yet what is down. Ask again in a "
    "few seconds."
)
UNLABELLED = "no broker has a region or zone label: set them with `strandline broker label`"
SILENT = "silent"
"""The verdict about a broker that neither the controller nor half of the zones hear."""
SAID = {"hold": "held by hand", "release": "released", "lost": "declared lost"}
"""{ruling: its text}"""


@dataclass(frozen=True, slots=True)
class ZoneRow:
    """A zone or a region. `heard`: "heard/counted" brokers, without those in maintenance; `silent`:
    the others, reported as an outage or not. `marks`: "low-high %", empty if unknown.
    `waiting`: partitions with a replica on a silent broker there."""

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
    verdicts = {one.broker_id: one.verdict for one in found.brokers}
    return [
        _row(one, regions.get(one.region, one), verdicts, is_unsettled=found.is_unsettled)
        for one in found.zones
    ]


def is_calm(found: DescribeZonesResponse) -> bool:
    """Whether nothing is reported, except alarms about voters and leaders, and the controller
    knows enough to say so."""
    is_known = not found.is_unsettled and all(one.verdict != SILENT for one in found.brokers)
    return is_known and all(one.kind in ELSEWHERE for one in found.happenings)


def summary_lines(found: DescribeZonesResponse) -> Iterator[str]:
    """What the reports come to: all is up, it is not known, or brokers are silent for too short a
    time to be reported; nothing if the reports say it."""
    if found.is_unsettled:
        yield UNSETTLED
    elif is_calm(found):
        yield CALM
    elif all(one.kind in ELSEWHERE for one in found.happenings):
        silent = [one.broker_id for one in found.brokers if one.verdict == SILENT]
        verb = "is" if len(silent) == 1 else "are"
        yield (
            f"{brokers_text(map(BrokerId, silent))} {verb} silent; Strandline reports an outage "
            "after up to 10 s of silence: ask again in a few seconds."
        )


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


def _row(
    zone: DescribedZone,
    region: DescribedZone,
    verdicts: Mapping[int, str],
    *,
    is_unsettled: bool,
) -> ZoneRow:
    counted = [one for one in zone.brokers if one not in zone.planned]
    silent = [one for one in counted if one in zone.silent or verdicts.get(one) == SILENT]
    return ZoneRow(
        name=zone.name,
        level=level_of(zone),
        state=_state(zone, counted, silent, is_unsettled=is_unsettled),
        heard=f"{len(counted) - len(silent)}/{len(counted)}",
        marks=f"{zone.low_percent}-{zone.high_percent} %" if zone.low_percent else "",
        silent=silent,
        repair=_repair(zone, region),
        waiting=zone.waiting_count,
    )


def _state(
    zone: DescribedZone, counted: Sequence[int], silent: Sequence[int], *, is_unsettled: bool
) -> str:
    """The state in words; never "up" without a broker that is heard."""
    if zone.is_down:
        return f"down for {max(0, zone.down_ms) // 60_000} min"
    if silent and is_unsettled:
        return "not known yet"
    return "no broker heard" if silent and len(silent) == len(counted) else "up"


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
