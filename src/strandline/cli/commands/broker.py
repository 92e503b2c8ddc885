"""`strandline broker`: take brokers out of the cluster, for good or for a while; how far that is;
their labels.

Source: docs/reference/cli.md; docs/decisions/0011-the-life-of-a-broker.md."""

from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.json_value import Json
from strandline.cli.commands import broker_label
from strandline.cli.options import DEFAULT_TIMEOUT_S, AsJson, Bootstrap, Timeout, open_client
from strandline.cli.output import counted, ids, print_line, show

if TYPE_CHECKING:
    from strandline.client.cluster import Client
    from strandline.client.operations.broker_removal import Leaving, Lives
    from strandline.client.operations.configs import Changes
    from strandline.model.ids import BrokerId

app = typer.Typer(
    help="Take brokers out of the cluster, for good or for a while; change their labels.",
    no_args_is_help=True,
)
app.command("label")(broker_label.label)

Domain = Annotated[
    str, typer.Option("--domain", metavar="NAME", help="All brokers of an upgrade domain.")
]
OptionalId = Annotated[
    int | None, typer.Argument(metavar="[ID]", min=0, help="The broker.", show_default=False)
]
Id = Annotated[int, typer.Argument(metavar="ID", min=0, help="The broker.")]


@app.command()
def decommission(
    broker: Id,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Have all that a broker holds moved to others; refused where they have no place for it."""
    from strandline.config.broker_life import DECOMMISSION

    with open_client(bootstrap, timeout) as client:
        _alter(client, {DECOMMISSION: "true"}, broker=broker)
    line = f"broker {broker} is being emptied; see `strandline broker status`"
    show(as_json, {"broker": broker, "decommission": True}, people=lambda: print_line(line))


@app.command()
def cancel(
    broker: Id,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Let a broker that is being decommissioned stay; what has moved away is not moved back."""
    from strandline.config.broker_life import DECOMMISSION

    with open_client(bootstrap, timeout) as client:
        _alter(client, {DECOMMISSION: None}, broker=broker)
    line = f"broker {broker} stays"
    show(as_json, {"broker": broker, "decommission": False}, people=lambda: print_line(line))


@app.command()
def unregister(
    broker: Id,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Have the cluster forget a broker that is empty and was stopped for good."""
    from strandline.client.operations.broker_removal import unregister_broker
    from strandline.model.ids import BrokerId

    with open_client(bootstrap, timeout) as client:
        unregister_broker(client, BrokerId(broker))
    show(
        as_json,
        {"broker": broker, "registered": False},
        people=lambda: print_line(f"broker {broker} is no part of the cluster any more"),
    )


@app.command()
def maintain(
    broker: OptionalId = None,
    domain: Domain = "",
    minutes: Annotated[
        int,
        typer.Option(
            "--minutes", min=0, max=100_000, help="Ends by itself after so long; 0: when resumed."
        ),
    ] = 60,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Have others lead what a broker leads, before it is stopped for a while: its replicas stay.
    Refused where a partition could not be written without it."""
    import time

    from strandline.config.broker_life import MAINTENANCE, NO_END

    until_ms = int(time.time() * 1_000) + minutes * 60_000 if minutes else NO_END
    with open_client(bootstrap, timeout) as client:
        brokers = _alter(client, {MAINTENANCE: str(until_ms)}, broker=broker, domain=domain)
    line = f"in maintenance: {ids(brokers)}; see `strandline broker status`"
    told: dict[str, Json] = {"brokers": list(brokers), "until_ms": until_ms}
    show(as_json, told, people=lambda: print_line(line))


@app.command()
def resume(
    broker: OptionalId = None,
    domain: Domain = "",
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """End maintenance: the brokers lead again what they are preferred for."""
    from strandline.client.operations.broker_removal import describe_lives
    from strandline.config.broker_life import MAINTENANCE

    with open_client(bootstrap, timeout) as client:
        before = {one.broker for one in describe_lives(client).maintained}
        brokers = _alter(client, {MAINTENANCE: None}, broker=broker, domain=domain)
    ended = [one for one in brokers if one in before]
    others = [one for one in brokers if one not in before]

    def people() -> None:
        if ended:
            print_line(f"no more in maintenance: {ids(ended)}")
        if others:
            print_line(f"not in maintenance, as before: {ids(others)}")

    show(as_json, {"brokers": list(brokers), "ended": list(ended)}, people=people)


def _alter(
    client: "Client", changes: "Changes", *, broker: int | None, domain: str = ""
) -> "list[BrokerId]":
    """Change the broker, or all of the upgrade domain; returns who that is."""
    from strandline.client.operations.configs import alter_broker_configs

    brokers = _brokers(client, broker, domain)
    alter_broker_configs(client, brokers, changes)
    return brokers


def _brokers(client: "Client", broker: int | None, domain: str) -> "list[BrokerId]":
    """The one broker, or all of the upgrade domain."""
    from strandline.base.errors import OperatorError
    from strandline.client.operations.topology import describe_topology
    from strandline.model.ids import BrokerId

    if (broker is None) != bool(domain):
        raise OperatorError("give a broker, or --domain")
    if broker is not None:
        return [BrokerId(broker)]
    known = describe_topology(client).brokers
    found = [one.id for one in known if one.labels.upgrade_domain == domain]
    if not found:
        raise OperatorError(f"--domain {domain}: no broker is in this upgrade domain")
    return found


@app.command()
def status(
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Show which brokers are being decommissioned, what they still hold and why, and which are in
    maintenance, and what they still lead."""
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
    show(as_json, told, people=lambda: _print(found))


def _describe(one: "Leaving") -> Json:
    return {
        "broker": one.broker,
        "condition": one.condition,
        "replicas": one.replicas,
        "moving": one.moving,
        "empty": one.is_empty,
        "stuck": [
            {"reason": why.code, "text": why.text, "partitions": why.partitions}
            for why in one.stuck
        ],
    }


def _idle(condition: str) -> str:
    if condition in ("down", "lost"):
        return "holds nothing and is stopped: it may be unregistered"
    return "holds nothing: it may be stopped"


def _print(found: "Lives") -> None:
    if not found.leaving and not found.maintained:
        print_line("no broker is being decommissioned or in maintenance")
    for broker in found.maintained:
        state = f"leads {counted(broker.leads, 'partition')}" if broker.leads else "leads nothing"
        print_line(f"broker {broker.broker} ({broker.condition}) is in maintenance and {state}")
    for one in found.leaving:
        if one.is_empty:
            print_line(f"broker {one.broker} {_idle(one.condition)}")
            continue
        print_line(
            f"broker {one.broker} ({one.condition}) holds {counted(one.replicas, 'replica')}, "
            f"{one.moving} of them moving away"
        )
        for why in one.stuck:
            noun = "partition waits" if why.partitions == 1 else "partitions wait"
            print_line(f"  {why.code}: {why.text}; {why.partitions} {noun}")
