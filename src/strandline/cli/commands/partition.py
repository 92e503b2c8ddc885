"""`strandline partition`: moves replicas to other brokers, shows and cancels moves.

`partition_survivors` shows the logs left after a loss; `partition_declare_lost` gives up the rest.

Source: docs/reference/cli.md; docs/decisions/0009-moving-replicas.md."""

from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.json_value import Json
from strandline.cli.commands import partition_declare_lost, partition_survivors
from strandline.cli.options import (
    DEFAULT_TIMEOUT_S,
    AsJson,
    Bootstrap,
    DryRun,
    Timeout,
    open_client,
)
from strandline.cli.output import Table, ids, print_line, print_table, show
from strandline.cli.text.copy_rates import describe_rates, rate_lines

if TYPE_CHECKING:
    from strandline.base.errors import OperatorError
    from strandline.cli.text.one_move import OneMove
    from strandline.client.cluster import Client
    from strandline.client.operations.reassignments import MoveView
    from strandline.placement.explain.topics import TopicExplanation

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
    dry_run: DryRun = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Move even to brokers that break the topic's policy or, without one, survive "
            "less than now.",
        ),
    ] = False,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Move a partition's replicas to other brokers; returns when the move has started. Says what
    survives afterwards. Refused if the new replicas would break the topic's policy or, without
    one, survive less than the present ones."""
    from strandline.base.errors import StrandlineError
    from strandline.cli.text.one_move import look_at_move
    from strandline.client.operations.reassignments import move_replicas

    brokers = _brokers(to)
    with open_client(bootstrap, timeout) as client:
        try:
            found = look_at_move(client, topic, partition, brokers)
        except StrandlineError:
            if dry_run or not force:
                raise
            found = None
        if found is None and dry_run:
            raise _unknown(client, topic, partition, to)
        if found is not None and not force and not dry_run:
            _require_safe(found, f"{topic}-{partition}")
        if not dry_run:
            move_replicas(client, topic, partition, brokers)
    told: dict[str, Json] = {"topic": topic, "partition": partition, "replicas": list(brokers)}
    show(
        {**told, "moves": not dry_run, **_move_json(found)},
        as_json=as_json,
        people=lambda: _tell_move(found, f"{topic}-{partition}", brokers, is_done=not dry_run),
    )


def _brokers(to: str) -> list[int]:
    from strandline.base.errors import OperatorError

    try:
        return [int(one) for one in to.split(",")]
    except ValueError:
        raise OperatorError(f"--to {to}: expected broker IDs, as in --to 1,2,3") from None


def _unknown(client: "Client", topic: str, partition: int, to: str) -> "OperatorError":
    """Why a list says nothing that could be shown."""
    from strandline.base.errors import OperatorError

    count = len(client.topic(topic).partitions)
    if partition >= count:
        return OperatorError(
            f"topic {topic} has no partition {partition}: its partitions are 0 to {count - 1}"
        )
    return OperatorError(
        f"--to {to}: name as many brokers of this cluster as the partition has replicas, each once"
    )


def _require_safe(found: "OneMove", name: str) -> None:
    """Refuse what breaks the policy or, without one, survives less; raises OperatorError."""
    from strandline.base.errors import OperatorError

    if found.faults:
        raise OperatorError(
            f"{name}: replicas there would break {found.topic.policy_key}: the balancer would "
            "move them again; to move them all the same, add --force",
            [*found.faults, *_survives(found)],
        )
    if found.survives_less:
        raise OperatorError(
            f"{name}: replicas there would survive less than now; to move them all the same, add "
            "--force",
            [*_survival(found.before, "now, "), *_survives(found)],
        )


def _survives(found: "OneMove") -> list[str]:
    lines = _survival(found.after, "afterwards, ")
    is_same = lines == _survival(found.before, "afterwards, ")
    return [*lines, "as before the move"] if is_same else lines


def _survival(one: "TopicExplanation", before: str) -> list[str]:
    from strandline.cli.text.explaining import survival_lines

    return survival_lines(one.writes, one.data, but_not=one.writes_but_not, before=before)


def _move_json(found: "OneMove | None") -> dict[str, Json]:
    from strandline.cli.text.explaining import builtins

    if found is None:
        return {}
    return {
        "coming": list(found.coming),
        "faults": list(found.faults),
        "survives_less": found.survives_less,
        "writes": builtins(found.after.writes),
        "data": builtins(found.after.data),
    }


def _tell_move(found: "OneMove | None", name: str, brokers: "list[int]", *, is_done: bool) -> None:
    see = "; see `strandline partition moves`" if is_done else ""
    print_line(f"{name} {'moves' if is_done else 'would move'} to brokers {ids(brokers)}{see}")
    if found is None:
        return
    if found.coming:
        print_line(f"  brokers that get a copy: {ids(found.coming)}")
    if found.down:
        print_line(f"  down now, so the move ends only once they are back: {ids(found.down)}")
    for fault in found.faults:
        print_line(f"  breaks {found.topic.policy_key}: {fault}")
    if found.faults:
        print_line(
            "  the balancer moves it to satisfy the policy again, unless it is paused "
            "(`strandline cluster alter -c balancer.enable=false`)"
            if is_done
            else "  refused without --force"
        )
    if found.survives_less:
        told = "less than before" if is_done else "less than now: refused without --force"
        print_line(f"  survives {told}")
        for line in _survival(found.before, "before, " if is_done else "now, "):
            print_line(f"  {line}")
    for line in _survives(found):
        print_line(f"  {line}")
    if not is_done:
        print_line("nothing changed")


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
