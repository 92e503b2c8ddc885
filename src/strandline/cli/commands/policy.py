"""`strandline policy`: what a placement policy would do, on a cluster that is described.

Source: docs/reference/cli.md; docs/operating/placement.md."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.cli.options import AsJson
from strandline.cli.output import Json, Table, ids, print_line, print_table, show

if TYPE_CHECKING:
    from strandline.model.ids import BrokerId
    from strandline.placement.explain.explanation import Explanation
    from strandline.placement.policy.document import Goal
    from strandline.placement.solver.solve import Solution
    from strandline.placement.topology.universe import Candidate

app = typer.Typer(help="Try placement policies.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Try placement policies."""


@app.command()
def test(
    policy: Annotated[
        Path, typer.Argument(metavar="POLICY", help="A placement policy: JSON or YAML.")
    ],
    cluster: Annotated[
        Path,
        typer.Option("--cluster", metavar="FILE", help="Brokers and round trips: JSON or YAML."),
    ],
    partitions: Annotated[
        int, typer.Option("--partitions", "-p", min=1, max=10_000, help="How many to place.")
    ] = 12,
    replicas: Annotated[
        int,
        typer.Option("--replicas", "-r", min=1, max=15, help="If the policy says nothing."),
    ] = 3,
    min_insync: Annotated[
        int, typer.Option("--min-insync", min=1, max=15, help="The topic's min.insync.replicas.")
    ] = 1,
    prices: Annotated[
        Path | None, typer.Option("--prices", metavar="FILE", help="A price table: JSON or YAML.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Place a topic by a policy, without a cluster: where it goes and why, what survives, what a
    write waits for, what crosses regions; or why it cannot be placed, and what could be."""
    import random

    import msgspec

    from strandline.base.errors import OperatorError
    from strandline.cli.broker_file import read_file
    from strandline.placement.explain.explanation import explain
    from strandline.placement.explain.prices import decode_prices
    from strandline.placement.policy.document import Role
    from strandline.placement.policy.text import decode_policy
    from strandline.placement.solver.refusal import Refusal
    from strandline.placement.solver.request import Request
    from strandline.placement.solver.solve import solve
    from strandline.placement.topology.described import decode_cluster

    described = decode_cluster(read_file(cluster), source=str(cluster))
    table = None if prices is None else decode_prices(read_file(prices), source=str(prices))
    request = Request(
        policy=decode_policy(read_file(policy), source=str(policy)),
        min_insync_replicas=min_insync,
        default_voters=replicas,
        round_trips=described.round_trips,
    )
    found = solve(request, described.candidates, partitions=partitions, rng=random.Random(1))
    if isinstance(found, Refusal):
        raise OperatorError(f"{policy}: {found}")
    first = found.partitions[0]
    voter: Role = "voter"
    observer: Role = "observer"
    placed = [(one, voter) for one in first.voters] + [(one, observer) for one in first.observers]
    told = explain(request, described.candidates, placed, prices=table)
    show(
        as_json,
        {"partitions": _builtins(msgspec.to_builtins(found.partitions)),
         "first": _builtins(msgspec.to_builtins(told, builtin_types=()))},
        people=lambda: _tell(found, told, described.candidates),
    )  # fmt: skip


def _builtins(value: object) -> Json:
    return value  # type: ignore[return-value]


def _tell(found: "Solution", told: "Explanation", candidates: "Sequence[Candidate]") -> None:
    count = len(found.partitions)
    print_line(f"policy: {told.policy}")
    print_line(
        f"{count} partitions of {len(found.partitions[0].replicas)} replicas; an acknowledged "
        f"write is on {told.survival.write_quorum} of {told.survival.voters}"
    )
    print_line(f"writes go on after the loss of {_goals(told.survival.writes)}")
    print_line(f"no acknowledged write is lost by the loss of {_goals(told.survival.data)}")
    print_line("")
    _tell_load(found, candidates)
    print_line("")
    _tell_replicas(told, {one.id: one for one in candidates})
    _tell_ways(told)


def _goals(goals: "Iterable[Goal]") -> str:
    from strandline.placement.policy.goals import format_goal

    return ", or ".join(map(format_goal, goals)) or "nothing"


def _tell_load(found: "Solution", candidates: "Sequence[Candidate]") -> None:
    held = Counter(broker for one in found.partitions for broker in one.replicas)
    led = Counter(one.voters[0] for one in found.partitions)
    rows = [(one.id, _where(one), held[one.id], led[one.id]) for one in candidates]
    numbers = frozenset(("BROKER", "REPLICAS", "LEADERS"))
    print_table(Table(heads=("BROKER", "WHERE", "REPLICAS", "LEADERS"), rows=rows, right=numbers))


def _tell_replicas(told: "Explanation", brokers: "dict[BrokerId, Candidate]") -> None:
    rows = []
    for one in told.replicas:
        refused = "; ".join(map(str, one.refused))
        rows.append((one.broker, one.role, _where(brokers[one.broker]), ids(one.equal), refused))
    print_table(
        Table(
            title="partition 0:",
            heads=("BROKER", "ROLE", "WHERE", "AS GOOD", "NOT"),
            rows=rows,
            right=frozenset(("BROKER",)),
        )
    )


def _tell_ways(told: "Explanation") -> None:
    by_leader = {one.leader: one for one in told.traffic}
    costs = {one.leader: f"{one.per_gb} {one.currency}" for one in told.costs}
    waits = {
        one.leader: "not measured" if one.commit_ms is None else f"{one.commit_ms} ms"
        for one in told.latencies
    }
    rows = [
        (leader, waits.get(leader, "-"), one.cross_region, one.cross_zone, costs.get(leader, "-"))
        for leader, one in by_leader.items()
    ]
    print_line("")
    print_table(
        Table(
            heads=("LEADER", "A WRITE WAITS", "COPIES TO REGIONS", "TO ZONES", "PER GB"),
            rows=rows,
            right=frozenset(("LEADER", "COPIES TO REGIONS", "TO ZONES")),
        )
    )


def _where(broker: "Candidate") -> str:
    labels = broker.labels
    path = "/".join(part for part in (labels.region, labels.zone, labels.rack, labels.host) if part)
    return path or "-"
