"""`strandline policy`: tries a placement policy on a running or a described cluster.

Source: docs/reference/cli.md; docs/operating/placement.md."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from strandline.cli.commands.policy_topic import preview_topic
from strandline.cli.exit_codes import ERROR
from strandline.cli.options import (
    DEFAULT_TIMEOUT_S,
    AsJson,
    Bootstrap,
    PriceFile,
    Timeout,
    open_client,
)
from strandline.cli.output import (
    Table,
    ids,
    print_error,
    print_json,
    print_line,
    print_table,
    show,
)

if TYPE_CHECKING:
    from strandline.client.admin import NewTopic
    from strandline.client.cluster import Client
    from strandline.model.ids import BrokerId
    from strandline.placement.explain.explanation import Explanation
    from strandline.placement.policy.document import Policy, Role
    from strandline.placement.solver.refusal import Refusal
    from strandline.placement.solver.request import Request
    from strandline.placement.solver.solve import Solution
    from strandline.placement.survival.courses import Rules
    from strandline.placement.topology.universe import Candidate

PARTITIONS = 12
DESCRIBED_REPLICAS = 3
DESCRIBED_MIN_INSYNC = 1

app = typer.Typer(help="Try placement policies.", no_args_is_help=True)


Replicas = Annotated[
    int | None,
    typer.Option(
        "--replicas",
        "-r",
        min=1,
        max=15,
        help="Replicas, if the policy does not say; default: the cluster's, or 3.",
    ),
]
MinInsync = Annotated[
    int | None,
    typer.Option(
        "--min-insync",
        min=1,
        max=15,
        help="The topic's min.insync.replicas; default: the cluster's, or 1.",
    ),
]


@app.callback()
def group() -> None:
    """Try placement policies."""


@app.command()
def test(
    policy: Annotated[
        Path,
        typer.Argument(
            metavar="POLICY", help="A placement policy: JSON or YAML, Strandline's or Confluent's."
        ),
    ],
    cluster: Annotated[
        Path | None,
        typer.Option(
            "--cluster",
            metavar="FILE",
            help="Brokers and round trips: JSON or YAML. Default: the running cluster.",
        ),
    ] = None,
    topic: Annotated[
        str,
        typer.Option(
            "--topic",
            metavar="NAME",
            help="Show the moves and their cost for this topic, instead of a new topic.",
        ),
    ] = "",
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions", "-p", min=1, max=10_000, help="Partitions to place; default: 12."
        ),
    ] = None,
    replicas: Replicas = None,
    min_insync: MinInsync = None,
    prices: PriceFile = None,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Place a topic by a policy without creating it: where replicas go and why, what survives,
    what a write waits for, what crosses regions; or why it cannot be placed, and what could be.
    With --topic: what would move. Changes nothing."""
    from strandline.base.errors import OperatorError
    from strandline.cli.text.explaining import builtins, check_prices, read_prices
    from strandline.placement.explain.explanation import explain

    wanted = _read(policy)
    if topic:
        if any(one is not None for one in (cluster, partitions, replicas, min_insync, prices)):
            raise OperatorError("--topic uses the topic's own settings: give only a policy with it")
        with open_client(bootstrap, timeout) as client:
            preview_topic(client, topic, wanted, as_json=as_json)
        return
    table = read_prices(prices)
    if cluster is not None:
        request, candidates, rules = _described(cluster, wanted, replicas, min_insync)
    else:
        with open_client(bootstrap, timeout) as client:
            _ask(client, policy, _new_topic(wanted, partitions, replicas, min_insync))
            request, candidates, rules = _live(client, wanted, replicas, min_insync)
    check_prices(table, prices, candidates)
    found, notes = _placed(policy, request, candidates, partitions or PARTITIONS, as_json=as_json)
    told = explain(request, candidates, _roles(found), prices=table, rules=rules)
    show(
        {"partitions": builtins(found.partitions), "first": builtins(told), "notes": notes},
        as_json=as_json,
        people=lambda: _tell(found, told, candidates, notes),
    )


def _placed(
    file: Path,
    request: "Request",
    candidates: "Sequence[Candidate]",
    partitions: int,
    *,
    as_json: bool,
) -> "tuple[Solution, list[str]]":
    """Where they go, and what may be wrong with the policy all the same; ends where they go
    nowhere."""
    import random

    from strandline.cli.text.policy_notes import notes_on
    from strandline.placement.solver.refusal import Refusal
    from strandline.placement.solver.solve import solve

    found = solve(request, candidates, partitions=partitions, rng=random.Random(1))
    notes = notes_on(request.policy, candidates)
    if isinstance(found, Refusal):
        _refuse(file, found, notes, as_json=as_json)
    return found, notes


def _refuse(file: Path, found: "Refusal", notes: list[str], *, as_json: bool) -> NoReturn:
    """End with why, line by line, on standard error; for programs all of it on standard output."""
    from strandline.cli.text.explaining import builtins

    told = [*found.lines(), *notes]
    print_error(f"{file}: {told[0]}", () if as_json else told[1:])
    if as_json:
        print_json({"refusal": builtins(found), "told": told})
    raise typer.Exit(ERROR)


def _read(file: Path) -> "Policy":
    from strandline.cli.server.broker_file import read_file
    from strandline.placement.policy.confluent import decode_either

    return decode_either(read_file(file), source=str(file))


def _roles(found: "Solution") -> "list[tuple[BrokerId, Role]]":
    """The replicas of the first partition."""
    one = found.partitions[0]
    voters: list[tuple[BrokerId, Role]] = [(each, "voter") for each in one.voters]
    return [*voters, *((each, "observer") for each in one.observers)]


def _described(
    file: Path, policy: "Policy", replicas: int | None, min_insync: int | None
) -> "tuple[Request, Sequence[Candidate], Rules]":
    from strandline.cli.server.broker_file import read_file
    from strandline.config.cluster import ClusterConfig
    from strandline.controller.outages.regions import regions_of
    from strandline.placement.solver.request import Request
    from strandline.placement.survival.courses import Rules
    from strandline.placement.topology.described import decode_cluster

    described = decode_cluster(read_file(file), source=str(file))
    request = Request(
        policy=policy,
        min_insync_replicas=min_insync or DESCRIBED_MIN_INSYNC,
        default_voters=_voters(policy, replicas) or DESCRIBED_REPLICAS,
        round_trips=described.round_trips,
    )
    rules = Rules(
        request.min_insync_replicas,
        bool(policy.promotion),
        promotion=policy.promotion,
        regions=regions_of(
            {one.id: one.labels for one in described.candidates}, ClusterConfig.from_values({})
        ),
    )
    return request, described.candidates, rules


def _voters(policy: "Policy", replicas: int | None) -> int:
    """Voters among this number of replicas, as a replication factor counts them; 0 if not given."""
    observers = sum(rule.count or 0 for rule in policy.observer_rules())
    return max(1, replicas - observers) if replicas else 0


def _new_topic(
    policy: "Policy", partitions: int | None, replicas: int | None, min_insync: int | None
) -> "NewTopic":
    """What would be created, by a name that nothing has."""
    from uuid import uuid4

    from strandline.client.admin import USE_DEFAULT, NewTopic
    from strandline.controller.placing.policies import MIN_INSYNC, POLICY
    from strandline.placement.policy.text import encode_policy

    least = ((MIN_INSYNC, str(min_insync)),) if min_insync else ()
    return NewTopic(
        name=f"policy-test-{uuid4().hex}",
        partitions=partitions or PARTITIONS,
        replication_factor=replicas or USE_DEFAULT,
        configs=((POLICY, encode_policy(policy)), *least),
    )


def _ask(client: "Client", policy: Path, new: "NewTopic") -> None:
    """Have the controller refuse it, where it would."""
    from strandline.client.admin import check_topic

    check_topic(client, new, subject=str(policy))


def _live(
    client: "Client", policy: "Policy", replicas: int | None, min_insync: int | None
) -> "tuple[Request, Sequence[Candidate], Rules]":
    """As the controller would decide, which would not refuse it."""
    from strandline.cli.text.live_cluster import look, topic_defaults
    from strandline.cli.text.losses import rules_of_new
    from strandline.placement.solver.request import Request
    from strandline.placement.topology.universe import BrokerState

    found = look(client, ())
    defaults = topic_defaults(client)
    leaving = BrokerState.DECOMMISSIONING
    staying = sum(one.state is not leaving for one in found.candidates)
    request = Request(
        policy=policy,
        min_insync_replicas=min_insync or defaults.min_insync_replicas,
        default_voters=_voters(policy, replicas) or min(defaults.replicas, max(staying, 1)),
        round_trips=found.round_trips,
        takes_down_brokers=True,
        disk_used_percent_max=defaults.disk_full_percent,
        disk_high_percent=defaults.disk_high_percent,
    )
    rules = rules_of_new(client, found, request, shrinks=defaults.shrinks_by(policy))
    return request, found.candidates_with_room(), rules


def _tell(
    found: "Solution",
    told: "Explanation",
    candidates: "Sequence[Candidate]",
    notes: "Sequence[str]",
) -> None:
    from strandline.cli.text.explaining import tell_replicas, tell_survival, tell_ways
    from strandline.cli.text.policy_notes import tell_notes

    count = len(found.partitions)
    print_line(f"policy: {told.policy}")
    tell_notes(notes)
    print_line(
        f"{count} partition{'s' * (count > 1)} of {len(found.partitions[0].replicas)} "
        f"replicas; an acknowledged write is on {told.survival.write_quorum} of "
        f"{told.survival.voters}"
    )
    survival = told.survival
    tell_survival(survival.writes, survival.data, but_not=survival.writes_but_not)
    print_line("")
    _tell_load(found, candidates)
    _tell_unfit(candidates)
    print_line("")
    tell_replicas(told, {one.id: one for one in candidates}, title="partition 0:")
    print_line("")
    tell_ways(told)


def _tell_unfit(candidates: "Sequence[Candidate]") -> None:
    """Brokers that get no replicas, or only if no other broker can."""
    from strandline.placement.topology.universe import BrokerState

    down = [one.id for one in candidates if not one.is_up]
    if down:
        print_line(f"down brokers: {ids(down)}")
    for state in (BrokerState.DECOMMISSIONING, BrokerState.MAINTENANCE):
        brokers = [one.id for one in candidates if one.state is state]
        if brokers:
            print_line(f"brokers {state.value}: {ids(brokers)}")


def _tell_load(found: "Solution", candidates: "Sequence[Candidate]") -> None:
    from strandline.cli.text.explaining import where

    held = Counter(broker for one in found.partitions for broker in one.replicas)
    led = Counter(one.voters[0] for one in found.partitions)
    rows = [(one.id, where(one), held[one.id], led[one.id]) for one in candidates]
    numbers = frozenset(("BROKER", "REPLICAS", "LEADERS"))
    heads = ("BROKER", "WHERE", "REPLICAS", "LEADERS")
    print_table(Table(heads=heads, rows=rows, right=numbers))
