"""`strandline zone`: outages, and whether data there is re-replicated elsewhere.

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
    help="Zones and regions: which are down, and whether their data is re-replicated elsewhere.",
    no_args_is_help=True,
)

Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="A zone, region/zone or region.", show_default=False),
]
For = Annotated[
    str, typer.Option("--for", metavar="TIME", help="Ends by itself after this time: 30m, 12h, 7d.")
]
AsRegion = Annotated[
    bool, typer.Option("--region", help="NAME is a region, even if a zone has the same name.")
]
_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@app.command()
def status(
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Show zones and regions, current outages, and which brokers reach which."""
    from strandline.client.operations.zones import describe_zones_soon, zones_json

    with open_client(bootstrap, timeout) as client:
        found = describe_zones_soon(client)
    show(zones_json(found), as_json=as_json, people=lambda: _print(found))


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
        _rule(name, ruling, for_, bootstrap, timeout, is_region=region, as_json=as_json)


_offer(
    "hold",
    "Do not re-replicate a zone's data elsewhere, whether it is down or not: before planned "
    "work, or to wait longer. Without --for, until released.",
)
_offer(
    "release",
    "End a hold. If the zone is down, re-replicate what is lost there, as for single brokers, "
    "until it returns.",
)


@app.command("declare-lost")
def declare_lost(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    for_: For = "",
    region: AsRegion = False,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Give up the silent brokers of a zone: re-replicate their data elsewhere at once. Ends when
    the zone returns."""
    _rule(name, "lost", for_, bootstrap, timeout, is_region=region, as_json=as_json, is_sure=yes)


# ---- what is said --------------------------------------------------------------------------------


def _rule(
    name: str,
    ruling: str,
    for_: str,
    bootstrap: str,
    timeout: float,
    *,
    is_region: bool,
    as_json: bool,
    is_sure: bool = True,
) -> None:
    from strandline.client.operations.zones import describe_zones, rule_zone
    from strandline.model.cluster import Ruling

    for_ms = _duration_ms(for_)
    with open_client(bootstrap, timeout) as client:
        found = describe_zones(client)
        zone = _find(found.zones, name, is_region=is_region)
        if not is_sure:
            silent = {one.broker_id for one in found.brokers if one.verdict == "silent"}
            _confirm(zone, len(silent.intersection(zone.brokers).union(zone.silent)))
        answer = rule_zone(client, zone, Ruling(ruling), for_ms=for_ms)
    told: dict[str, Json] = {
        "name": zone.name,
        "down": answer.is_down,
        "ruling": answer.ruling or None,
        "until_ms": None if answer.ruling_until_ms < 0 else answer.ruling_until_ms,
    }
    show(told, as_json=as_json, people=lambda: print_line(_answer_text(zone, answer)))


def _confirm(zone: "DescribedZone", silent: int) -> None:
    """Have the name typed again; raises OperatorError. `silent`: how many of its brokers are, in
    maintenance or not."""
    import sys

    from strandline.base.errors import OperatorError
    from strandline.client.operations.zone_rows import level_of

    count = len(zone.brokers)
    if not silent:
        raise OperatorError(
            f"{level_of(zone)} {zone.name} is not lost: all its brokers are reachable"
        )
    sys.stderr.write(
        f"{silent} of {count} brokers of {level_of(zone)} {zone.name} are silent; "
        f"{zone.waiting_count} partitions wait for them. Strandline would re-replicate their "
        f"data elsewhere and may copy all of it.\nType {zone.name} to continue: "
    )
    sys.stderr.flush()
    if sys.stdin.readline().strip() != zone.name:
        raise OperatorError("the name does not match: nothing done (--yes skips the question)")


def _answer_text(zone: "DescribedZone", answer: "RuleZoneResponse") -> str:
    from strandline.client.operations.moments import time_text
    from strandline.client.operations.zone_rows import SAID, level_of

    where = f"{level_of(zone)} {zone.name}"
    if not answer.ruling:
        return f"{where} is no longer held"
    until = "" if answer.ruling_until_ms < 0 else f" until {time_text(answer.ruling_until_ms)}"
    return f"{where} is {SAID.get(answer.ruling, answer.ruling)}{until}"


def _find(zones: "Sequence[DescribedZone]", name: str, *, is_region: bool) -> "DescribedZone":
    """The zone or region of that name; raises OperatorError."""
    from strandline.base.errors import OperatorError
    from strandline.client.operations.zone_rows import level_of

    if not name:
        raise OperatorError("zone name is empty; see `strandline zone status`")
    fitting = [one for one in zones if name in (one.name, f"{one.region}/{one.zone}")]
    if not fitting and not is_region:
        same = [f"{one.region}/{one.zone}" for one in zones if one.zone == name]
        if same:
            raise OperatorError(f"zone {name} is ambiguous: write {' or '.join(same)}")
    if is_region:
        fitting = [one for one in fitting if not one.zone]
    if not fitting:
        known = ", ".join(f"{level_of(one)} {one.name}" for one in zones) or "no labels"
        raise OperatorError(f"no zone or region {name[:80]!r}; known: {known}")
    return max(fitting, key=lambda one: bool(one.zone))


def _duration_ms(text: str) -> int:
    from strandline.base.errors import OperatorError
    from strandline.model.cluster import NO_END_MS

    if not text:
        return NO_END_MS
    found = re.fullmatch(r"([1-9][0-9]{0,5})([smhd])", text)
    if found is None:
        raise OperatorError(
            f"--for {text[:20]!r}: expected a number of 1 to 999999 and a unit, as in 30m, 12h "
            "or 7d"
        )
    return int(found[1]) * _UNITS_MS[found[2]]


# ---- what is shown -------------------------------------------------------------------------------


def _print(found: "DescribeZonesResponse") -> None:
    from strandline.client.operations.zone_rows import (
        UNLABELLED,
        heard_lines,
        rows_of,
        summary_lines,
    )

    if not found.zones:
        print_line(UNLABELLED)
    else:
        heads = ("NAME", "LEVEL", "STATE", "HEARD", "MARKS", "SILENT", "REPAIR", "WAITING")
        rows = [
            (
                one.name, one.level, one.state, one.heard, one.marks or "-", ids(one.silent),
                one.repair, one.waiting,
            )
            for one in rows_of(found)
        ]  # fmt: skip
        print_table(Table(heads=heads, rows=rows, right=frozenset(("HEARD", "WAITING"))))
    for one in found.happenings:
        print_line(f"{one.kind}: {one.text}")
    for line in (*summary_lines(found), *heard_lines(found)):
        print_line(line)
