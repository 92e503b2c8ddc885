"""`strandline broker`: take brokers out of the cluster, and see how far that is.

Source: docs/reference/cli.md; docs/decisions/0011-the-life-of-a-broker.md."""

from typing import TYPE_CHECKING, Annotated

import typer

from strandline.cli.options import DEFAULT_TIMEOUT_S, AsJson, Bootstrap, Timeout, open_client
from strandline.cli.output import Json, print_line, show

if TYPE_CHECKING:
    from strandline.client.lives import Leaving

app = typer.Typer(help="Take brokers out of the cluster.", no_args_is_help=True)

Id = Annotated[int, typer.Argument(metavar="ID", min=0, help="The broker.")]


@app.command()
def decommission(
    broker: Id,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Have all that a broker holds moved to others; refused where they have no place for it."""
    from strandline.client.lives import alter_lives
    from strandline.config.broker_life import DECOMMISSION
    from strandline.model.ids import BrokerId

    with open_client(bootstrap, timeout) as client:
        alter_lives(client, [BrokerId(broker)], {DECOMMISSION: "true"})
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
    from strandline.client.lives import alter_lives
    from strandline.config.broker_life import DECOMMISSION
    from strandline.model.ids import BrokerId

    with open_client(bootstrap, timeout) as client:
        alter_lives(client, [BrokerId(broker)], {DECOMMISSION: None})
    show(
        as_json,
        {"broker": broker, "decommission": False},
        people=lambda: print_line(f"broker {broker} stays"),
    )


@app.command()
def status(
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Show which brokers are being decommissioned, what they still hold, and why."""
    from strandline.client.lives import leaving_brokers

    with open_client(bootstrap, timeout) as client:
        found = leaving_brokers(client)
    show(as_json, {"leaving": [_describe(one) for one in found]}, people=lambda: _print(found))


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


def _print(found: "list[Leaving]") -> None:
    if not found:
        print_line("no broker is being decommissioned")
    for one in found:
        if one.is_empty:
            print_line(f"broker {one.broker} holds nothing: it may be stopped")
            continue
        noun = "replica" if one.replicas == 1 else "replicas"
        print_line(
            f"broker {one.broker} ({one.condition}) holds {one.replicas} {noun}, "
            f"{one.moving} of them moving away"
        )
        for why in one.stuck:
            noun = "partition waits" if why.partitions == 1 else "partitions wait"
            print_line(f"  {why.code}: {why.text}; {why.partitions} {noun}")
