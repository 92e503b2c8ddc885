"""`strandline partition`: moves replicas to other brokers, shows and cancels moves.

`partition_survivors` shows the logs left after a loss; `partition_declare_lost` gives up the rest.

Source: docs/reference/cli.md; docs/decisions/0009-moving-replicas.md."""

from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.json_value import Json
from strandline.cli.commands import partition_declare_lost, partition_survivors
from strandline.cli.options import DEFAULT_TIMEOUT_S, AsJson, Bootstrap, Timeout, open_client
from strandline.cli.output import Table, ids, print_line, print_table, show
from strandline.cli.text.copy_rates import describe_rates, rate_lines

if TYPE_CHECKING:
    from strandline.client.operations.reassignments import MoveView

app = typer.Typer(
    help="Move replicas of partitions between brokers; recover a partition that has lost most "
    "of its voters.",
    no_args_is_help=True,
)

Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.")]
Index = Annotated[int, typer.Argument(metavar="PARTITION", min=0, help="The partition.")]


@app.command()
def move(
    topic: Topic,
    partition: Index,
    to: Annotated[
        str,
        typer.Option(
            "--to", metavar="ID,ID...", help="Brokers to hold it, the preferred leader first."
        ),
    ],
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Move a partition's replicas to other brokers; returns when the move has started."""
    from strandline.base.errors import OperatorError
    from strandline.client.operations.reassignments import move_replicas

    try:
        brokers = [int(one) for one in to.split(",")]
    except ValueError:
        raise OperatorError(f"--to {to}: expected broker IDs, as in --to 1,2,3") from None
    with open_client(bootstrap, timeout) as client:
        move_replicas(client, topic, partition, brokers)
    show(
        {"topic": topic, "partition": partition, "replicas": list(brokers)},
        as_json=as_json,
        people=lambda: print_line(
            f"{topic}-{partition} moves to brokers {ids(brokers)}; see `strandline partition moves`"
        ),
    )


@app.command()
def moves(
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Show partitions with moving replicas, the progress of each added replica, and the copy
    rates."""
    from strandline.client.operations.balance import describe_balance
    from strandline.client.operations.reassignments import list_moves

    with open_client(bootstrap, timeout) as client:
        found = list_moves(client)
        rates = describe_balance(client).rates
    told: Json = {"moves": [_describe(one) for one in found], "rates": describe_rates(rates)}
    show(told, as_json=as_json, people=lambda: _list(found, rate_lines(rates)))


@app.command()
def cancel(
    topic: Topic,
    partition: Index,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Cancel a move of a partition's replicas; undoes what can no longer be cancelled."""
    from strandline.client.operations.reassignments import move_replicas

    with open_client(bootstrap, timeout) as client:
        move_replicas(client, topic, partition, None)
    show(
        {"topic": topic, "partition": partition},
        as_json=as_json,
        people=lambda: print_line(f"{topic}-{partition} stays where it was"),
    )


app.command("survivors")(partition_survivors.survivors)
app.command("declare-lost")(partition_declare_lost.declare_lost)


def _describe(one: "MoveView") -> Json:
    return {
        "topic": one.topic,
        "partition": one.partition,
        "replicas": list(one.replicas),
        "adding": list(one.adding),
        "removing": list(one.removing),
        "end_offset": one.end,
        "reached": {str(broker): offset for broker, offset in one.reached.items()},
    }


def _list(found: "list[MoveView]", rates: list[str]) -> None:
    for line in rates:
        print_line(line)
    if not found:
        print_line("no moves")
        return
    print_table(
        Table(
            heads=("PARTITION", "REPLICAS", "ADDING", "REMOVING", "REACHED", "END"),
            rows=[
                (
                    f"{one.topic}-{one.partition}",
                    ids(one.replicas),
                    ids(one.adding),
                    ids(one.removing),
                    " ".join(
                        f"{broker}:{'?' if offset is None else offset}"
                        for broker, offset in one.reached.items()
                    )
                    or "-",
                    "?" if one.end is None else one.end,
                )
                for one in found
            ],
            right=frozenset({"END"}),
        )
    )
