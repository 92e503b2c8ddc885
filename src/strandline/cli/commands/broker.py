"""`strandline broker`: maintenance of brokers, progress of those that leave, and labels.

Source: docs/reference/cli.md; docs/decisions/0011-the-life-of-a-broker.md."""

from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.json_value import Json
from strandline.cli.commands import (
    broker_dry_run,
    broker_label,
    broker_ok_to_stop,
    broker_removal,
)
from strandline.cli.options import (
    DEFAULT_TIMEOUT_S,
    AsJson,
    Bootstrap,
    Domain,
    DryRun,
    Host,
    OptionalId,
    Timeout,
    named_brokers,
    open_client,
)
from strandline.cli.output import counted, ids, print_line, show

if TYPE_CHECKING:
    from strandline.client.operations.broker_removal import Leaving, Lives

app = typer.Typer(
    help="Take brokers out of the cluster, for good or for a while; change their labels.",
    no_args_is_help=True,
)
app.command("label")(broker_label.label)
app.command("ok-to-stop")(broker_ok_to_stop.ok_to_stop)
app.command("decommission")(broker_removal.decommission)
app.command("cancel")(broker_removal.cancel)
app.command("unregister")(broker_removal.unregister)


@app.command()
def maintain(
    broker: OptionalId = None,
    domain: Domain = "",
    host: Host = "",
    minutes: Annotated[
        int,
        typer.Option(
            "--minutes",
            min=0,
            max=100_000,
            help="Minutes until maintenance ends by itself; 0: only when resumed.",
        ),
    ] = 60,
    dry_run: DryRun = False,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Move leadership off a broker before you stop it for a while; its replicas stay. Refused if
    a partition could not be written without it. With --dry-run: show what a stop would do."""
    import time

    from strandline.client.operations.configs import alter_broker_configs
    from strandline.config.broker_life import MAINTENANCE, NO_END

    until_ms = int(time.time() * 1_000) + minutes * 60_000 if minutes else NO_END
    with open_client(bootstrap, timeout) as client:
        named = named_brokers(client, broker, domain=domain, host=host)
        if dry_run:
            broker_dry_run.show_maintenance(client, named, until_ms, as_json=as_json)
            return
        alter_broker_configs(client, named, {MAINTENANCE: str(until_ms)})
    line = f"in maintenance: {ids(named)}; see `strandline broker status`"
    told: dict[str, Json] = {"brokers": list(named), "until_ms": until_ms}
    show(told, as_json=as_json, people=lambda: print_line(line))


@app.command()
def resume(
    broker: OptionalId = None,
    domain: Domain = "",
    host: Host = "",
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """End maintenance: the brokers lead their preferred partitions again."""
    from strandline.client.operations.broker_removal import describe_lives
    from strandline.client.operations.configs import alter_broker_configs
    from strandline.config.broker_life import MAINTENANCE

    with open_client(bootstrap, timeout) as client:
        before = {one.broker for one in describe_lives(client).maintained}
        brokers = named_brokers(client, broker, domain=domain, host=host)
        alter_broker_configs(client, brokers, {MAINTENANCE: None})
    ended = [one for one in brokers if one in before]
    others = [one for one in brokers if one not in before]

    def people() -> None:
        if ended:
            print_line(f"maintenance ended: {ids(ended)}")
        if others:
            print_line(f"not in maintenance: {ids(others)}")

    show({"brokers": list(brokers), "ended": list(ended)}, as_json=as_json, people=people)


@app.command()
def status(
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Show brokers that are being decommissioned, with what they still hold and why, and brokers
    in maintenance, with what they still lead."""
    from strandline.client.operations.broker_removal import describe_lives

    with open_client(bootstrap, timeout) as client:
        found = describe_lives(client)
    told: dict[str, Json] = {
        "leaving": [_describe(one) for one in found.leaving],
        "maintenance": [
            {"broker": one.broker, "until_ms": one.until_ms, "leads": one.leads}
            for one in found.maintained
        ],
    }
    show(told, as_json=as_json, people=lambda: _print(found))


def _describe(one: "Leaving") -> Json:
    return {
        "broker": one.broker,
        "condition": one.condition,
        "replicas": one.replicas,
        "moving": one.moving,
        "empty": one.is_empty,
        "votes": bool(one.vote),
        "stuck": [
            {"reason": why.code, "text": why.text, "partitions": why.partitions}
            for why in one.stuck
        ],
    }


def _idle(one: "Leaving") -> str:
    if one.condition in ("down", "lost"):
        return "is empty and stopped: you may unregister it"
    return "is empty: you may stop it"


def _print(found: "Lives") -> None:
    if not found.leaving and not found.maintained:
        print_line("no broker is being decommissioned or in maintenance")
    for broker in found.maintained:
        state = f"leads {counted(broker.leads, 'partition')}" if broker.leads else "leads nothing"
        print_line(f"broker {broker.broker} ({broker.condition}) is in maintenance and {state}")
    for one in found.leaving:
        if one.is_empty:
            print_line(f"broker {one.broker} {_idle(one)}")
            continue
        if one.vote:
            print_line(one.vote)
        if not one.replicas:
            continue
        print_line(
            f"broker {one.broker} ({one.condition}) holds {counted(one.replicas, 'replica')}, "
            f"{one.moving} of them moving away"
        )
        for why in one.stuck:
            noun = "partition waits" if why.partitions == 1 else "partitions wait"
            print_line(f"  {why.code}: {why.text}; {why.partitions} {noun}")
