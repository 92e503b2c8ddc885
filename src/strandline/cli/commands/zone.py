"""`strandline zone`: what is down, and whether what is there is made anew elsewhere.

Source: docs/reference/cli.md; docs/decisions/0018-outages.md."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.json_value import Json
from strandline.cli.options import DEFAULT_TIMEOUT_S, AsJson, Bootstrap, Timeout, open_client
from strandline.cli.output import Table, ids, print_line, print_table, show

if TYPE_CHECKING:
    from strandline.protocol.messages.describe_zones import DescribedZone, DescribeZonesResponse
    from strandline.protocol.messages.rule_zone import RuleZoneResponse

app = typer.Typer(
    help="Zones and regions: what is down, and whether it is made anew elsewhere.",
    no_args_is_help=True,
)

Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="A zone, region/zone or region.", show_default=False),
]
For = Annotated[
    str, typer.Option("--for", metavar="TIME", help="Ends by itself after so long: 30m, 12h, 7d.")
]
AsRegion = Annotated[
    bool, typer.Option("--region", help="NAME is a region, though a zone is called so, too.")
]
_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SAID = {"hold": "held by hand", "release": "released", "lost": "declared lost"}


@app.command()
def status(
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Show zones and regions, what goes on, and who is heard from where."""
    from strandline.client.zones import describe_zones, told_of

    with open_client(bootstrap, timeout) as client:
        found = describe_zones(client)
    show(as_json, told_of(found), people=lambda: _print(found))


def _offer(ruling: str, text: str) -> None:
    """Offer a command of the name of a `Ruling` that is taken down without asking again."""

    @app.command(ruling, help=text)
    def rule(
        name: Name,
        for_: For = "",
        region: AsRegion = False,
        bootstrap: Bootstrap = "",
        timeout: Timeout = DEFAULT_TIMEOUT_S,
        as_json: AsJson = False,
    ) -> None:
        _rule(name, ruling, for_, region, bootstrap, timeout, as_json)


_offer(
    "hold",
    "Have nothing of a zone made anew elsewhere, whether it is down or not: before planned work, "
    "or to go on waiting. Without --for until it is released.",
)
_offer(
    "release",
    "End a hold. Where the zone is down, have what is lost there made anew elsewhere, as for "
    "single brokers, until it is back.",
)


@app.command("declare-lost")
def declare_lost(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for the name again.")] = False,
    for_: For = "",
    region: AsRegion = False,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Give up the silent brokers of a zone: what they hold is made anew elsewhere at once, without
    waiting until they are lost. Ends when the zone is back."""
    _rule(name, "lost", for_, region, bootstrap, timeout, as_json, is_sure=yes)


# ---- what is said --------------------------------------------------------------------------------


def _rule(
    name: str,
    ruling: str,
    for_: str,
    is_region: bool,
    bootstrap: str,
    timeout: float,
    as_json: bool,
    *,
    is_sure: bool = True,
) -> None:
    from strandline.client.zones import describe_zones, rule_zone
    from strandline.model.cluster import Ruling

    for_ms = _duration_ms(for_)
    with open_client(bootstrap, timeout) as client:
        zone = _find(describe_zones(client).zones, name, is_region=is_region)
        if not is_sure:
            _confirm(zone)
        answer = rule_zone(client, zone, Ruling(ruling), for_ms=for_ms)
    told: dict[str, Json] = {
        "name": zone.name,
        "down": answer.is_down,
        "ruling": answer.ruling or None,
        "until_ms": None if answer.ruling_until_ms < 0 else answer.ruling_until_ms,
    }
    show(as_json, told, people=lambda: print_line(_answer_text(zone, answer)))


def _confirm(zone: "DescribedZone") -> None:
    """Have the name typed again; raises OperatorError."""
    import sys

    from strandline.base.errors import OperatorError

    silent, count = len(zone.silent), len(zone.brokers)
    sys.stderr.write(
        f"{silent} of {count} brokers of {_level(zone)} {zone.name} are silent, and "
        f"{zone.waiting_count} partitions wait for them. What these brokers hold would be made "
        f"anew elsewhere: that may copy all of it.\nType {zone.name} to do it: "
    )
    sys.stderr.flush()
    if sys.stdin.readline().strip() != zone.name:
        raise OperatorError("that is not its name: nothing was done (--yes does not ask)")


def _answer_text(zone: "DescribedZone", answer: "RuleZoneResponse") -> str:
    where = f"{_level(zone)} {zone.name}"
    if not answer.ruling:
        return f"{where} is held no more"
    until = "" if answer.ruling_until_ms < 0 else f" until {_time(answer.ruling_until_ms)}"
    return f"{where} is {_SAID.get(answer.ruling, answer.ruling)}{until}"


def _find(zones: "Sequence[DescribedZone]", name: str, *, is_region: bool) -> "DescribedZone":
    """The zone or region of that name; raises OperatorError."""
    from strandline.base.errors import OperatorError

    fitting = [one for one in zones if name in (one.name, f"{one.region}/{one.zone}")]
    if not fitting and not is_region:
        same = [f"{one.region}/{one.zone}" for one in zones if one.zone == name]
        if same:
            raise OperatorError(f"zone {name} is there more than once: say {' or '.join(same)}")
    if is_region:
        fitting = [one for one in fitting if not one.zone]
    if not fitting:
        known = ", ".join(f"{_level(one)} {one.name}" for one in zones) or "none is labelled"
        raise OperatorError(f"no broker is in {name[:80]!r}; there are: {known}")
    return max(fitting, key=lambda one: bool(one.zone))


def _duration_ms(text: str) -> int:
    from strandline.base.errors import OperatorError
    from strandline.model.cluster import NO_END_MS

    if not text:
        return NO_END_MS
    found = re.fullmatch(r"([1-9][0-9]{0,5})([smhd])", text)
    if found is None:
        raise OperatorError(f"--for {text[:20]!r} must look like 30m, 12h or 7d")
    return int(found[1]) * _UNITS_MS[found[2]]


# ---- what is shown -------------------------------------------------------------------------------


def _level(zone: "DescribedZone") -> str:
    return "zone" if zone.zone else "region"


def _time(wall_ms: int) -> str:
    import datetime

    moment = datetime.datetime.fromtimestamp(wall_ms / 1_000, datetime.UTC)
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _print(found: "DescribeZonesResponse") -> None:
    from strandline.controller.outages.voting import CLASSES

    if not found.zones:
        print_line("no broker has a label region or zone: `strandline broker label` sets them")
    else:
        heads = ("NAME", "LEVEL", "STATE", "HEARD", "MARKS", "SILENT", "REPAIR", "WAITING")
        regions = {one.region: one for one in found.zones if not one.zone}
        rows = [_row(one, regions.get(one.region, one)) for one in found.zones]
        print_table(Table(heads=heads, rows=rows, right=frozenset(("HEARD", "WAITING"))))
    for one in found.happenings:
        print_line(f"{one.kind}: {one.text}")
    if all(one.kind in CLASSES for one in found.happenings):
        print_line("nothing is down, and nothing is cut off")
    for seen in found.brokers:
        if seen.not_heard_from:
            heard = ", ".join(seen.heard_from) or "nowhere"
            away = ", ".join(seen.not_heard_from)
            print_line(f"broker {seen.broker_id}: heard from {heard}; not from {away}")


def _row(zone: "DescribedZone", region: "DescribedZone") -> tuple[str | int, ...]:
    count = len(zone.brokers) - len(zone.planned)
    state = "up"
    if zone.is_down:
        state = f"down for {max(0, zone.down_ms) // 60_000} min"
    heard = f"{count - len(zone.silent)}/{count}"
    marks = f"{zone.low_percent}-{zone.high_percent} %" if zone.low_percent else "-"
    silent, repair = ids(zone.silent), _repair(zone, region)
    return zone.name, _level(zone), state, heard, marks, silent, repair, zone.waiting_count


def _repair(zone: "DescribedZone", region: "DescribedZone") -> str:
    """Whether it is held, and by whom: what is said of the region counts where nothing is said of
    the zone."""
    ruled = zone if zone.ruling else region
    where = "" if ruled is zone else f" with {_level(region)} {region.name}"
    if ruled.ruling:
        text = _SAID.get(ruled.ruling, ruled.ruling) + where
        return text + (f" until {_time(ruled.ruling_until_ms)}" * (ruled.ruling_until_ms >= 0))
    if not zone.is_held:
        return "as usual"
    return "held until it is back" if zone.is_down else f"held{where}"
