"""`strandline cluster upgrade`: the order in which brokers may restart, and which may now.

Source: docs/reference/cli.md; docs/operating/brokers.md."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.json_value import Json
from strandline.cli.options import DEFAULT_TIMEOUT_S, AsJson, Bootstrap, Timeout, open_client
from strandline.cli.output import Table, ids, print_line, print_table, show

if TYPE_CHECKING:
    from strandline.cli.text.restarts import Restarts
    from strandline.placement.survival.restarts import QuorumGroup, Unit

app = typer.Typer(
    help="Restart all brokers while every partition stays writable.", no_args_is_help=True
)


@app.command()
def plan(
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Show which upgrade domains or brokers may restart together, and in which order."""
    from strandline.cli.text.restarts import look_at_restarts

    with open_client(bootstrap, timeout) as client:
        found = look_at_restarts(client)
    told: dict[str, Json] = {
        "steps": [[_unit(one) for one in step] for step in found.plan.steps],
        "never": [{**_unit(one), "why": _needs(found, group)} for one, group in found.plan.never],
        "split": [_unit(one) for one in found.plan.split],
    }
    show(told, as_json=as_json, people=lambda: _print_plan(found))


@app.command("next")
def next_(
    done: Annotated[
        list[str] | None,
        typer.Option(
            "--done",
            metavar="NAME",
            help="A domain or broker of the plan that is done; may be repeated.",
        ),
    ] = None,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Show what may restart now, given which brokers are down or behind, and why the rest must
    wait."""
    from strandline.cli.text.restarts import look_at_restarts

    with open_client(bootstrap, timeout) as client:
        found = look_at_restarts(client)
    now, later = found.now(done or ())
    told: dict[str, Json] = {
        "now": [_unit(one) for one in now],
        "later": [{**_unit(one), "why": why} for one, why in later],
    }
    show(told, as_json=as_json, people=lambda: _print_next(now, later))


def _unit(one: "Unit") -> dict[str, Json]:
    return {"name": one.name, "brokers": sorted(one.brokers)}


def _needs(found: "Restarts", group: "QuorumGroup") -> str:
    more = f"; so it is with {group.count - 1} more" if group.count > 1 else ""
    return f"{found.why(group)}{more}"


def _print_plan(found: "Restarts") -> None:
    rows = [
        (number, ", ".join(one.name for one in step), _ids_of(step))
        for number, step in enumerate(found.plan.steps, start=1)
    ]
    if rows:
        print_table(Table(heads=("STEP", "RESTART", "BROKERS"), rows=rows))
    for unit in found.plan.split:
        print_line(f"{unit.name} cannot go down as a whole: restart its brokers one by one")
    for unit, group in found.plan.never:
        print_line(f"{unit.name} cannot go down: {_needs(found, group)}")


def _ids_of(units: "Sequence[Unit]") -> str:
    return ids(sorted({broker for one in units for broker in one.brokers}))


def _print_next(now: "list[Unit]", later: "list[tuple[Unit, str]]") -> None:
    if now:
        names = ", ".join(one.name for one in now)
        print_line(f"restart now: {names} (brokers {_ids_of(now)})")
    elif later:
        print_line("restart nothing now")
    else:
        print_line("all restarted")
    for unit, why in later:
        print_line(f"  {unit.name}: {why}")
