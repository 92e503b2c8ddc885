"""`strandline drill`: cuts a region off for a while, and measures the effect.

Source: docs/reference/cli.md; docs/decisions/0019-drills.md."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.json_value import Json
from strandline.cli.commands import drill_cancel
from strandline.cli.options import DEFAULT_TIMEOUT_S, AsJson, Bootstrap, Timeout, open_client
from strandline.cli.output import Table, ids, print_line, print_table, show

if TYPE_CHECKING:
    from strandline.cli.drill.forecast import TopicForecast
    from strandline.cli.drill.groups import GroupsForecast
    from strandline.cli.drill.region import Outcome
    from strandline.cli.drill.verdict import Place

app = typer.Typer(
    help="Take down a part of the cluster for a while, and measure the effect.",
    no_args_is_help=True,
)

NOTHING_DONE = "nothing done; add --yes to run the drill"
TOPICS_SHOWN_MAX = 20

Name = Annotated[str, typer.Option("--name", metavar="REGION", help="The region to cut off.")]
Duration = Annotated[
    int, typer.Option("--for", min=1, max=600, metavar="SECONDS", help="How long it stays cut off.")
]
Partitions = Annotated[
    int,
    typer.Option(
        "--partitions",
        "-p",
        min=1,
        max=100,
        help="Partitions of the drill's own topic, each with one producer and one consumer.",
    ),
]
SteadyTimeout = Annotated[
    float,
    typer.Option(
        "--steady-timeout",
        min=1,
        max=7200,
        metavar="SECONDS",
        help="How long to wait afterwards until the cluster is as before.",
    ),
]


app.command("cancel")(drill_cancel.cancel)


@app.callback()
def group() -> None:
    """Take down a part of the cluster for a while, and measure the effect."""


@app.command()
def region(
    name: Name,
    duration: Duration = 30,
    partitions: Partitions = 6,
    steady_timeout: SteadyTimeout = 900,
    yes: Annotated[
        bool, typer.Option("--yes", help="Run the drill; without it, only show what would stop.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Run it even if writes stop or may be lost.")
    ] = False,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Cut a region off from clients and brokers, measure how long clients wait, reconnect it,
    and count lost records. Ctrl-C ends the cut and removes the drill's topic; so does `drill
    cancel` from another terminal. The region reconnects by itself, too, even if this command is
    killed. Brokers must allow drills."""
    from strandline.base.errors import OperatorError
    from strandline.cli.drill.forecast import forecast, loses_controller
    from strandline.cli.drill.groups import forecast_groups
    from strandline.cli.drill.region import RegionDrill, Settings, brokers_of, check_allowed
    from strandline.cli.exit_codes import ERROR
    from strandline.cli.text.live_cluster import look

    settings = Settings(name, duration * 1000, partitions, int(steady_timeout * 1000))
    with open_client(bootstrap, timeout) as client:
        brokers = brokers_of(client, name)
        check_allowed(client, brokers, settings)
        cluster = look(client, None, asks_leaders=True)
        decides = not loses_controller(client, cluster, brokers)
        expected = forecast(cluster, brokers, decides=decides)
        groups = forecast_groups(client, cluster, brokers, decides=decides)
        if not as_json:
            _tell_forecast(name, list(brokers), expected, groups, decides=decides)
        if not yes:
            told: Json = {
                "done": False,
                "brokers": list(brokers),
                "controller_goes_on": decides,
                "groups_coordinated_there": groups.coordinated,
                "groups_without_coordinator": groups.stopped,
                "topics": [_describe_forecast(one) for one in expected],
            }
            show(told, as_json=as_json, people=lambda: print_line(NOTHING_DONE))
            return
        hurt = [f"topic {one.topic}" for one in expected if one.stopped or one.exposed]
        hurt = hurt if decides else ["the controller", *hurt]
        if hurt and not force:
            more = f" and {len(hurt) - 1} more" if len(hurt) > 1 else ""
            raise OperatorError(
                f"without {name}, {hurt[0]}{more} would refuse writes or may lose some; to run "
                "it all the same, add --force"
            )
        drill = RegionDrill(
            client,
            lambda timeout_ms: open_client(bootstrap, timeout_ms / 1000),
            settings,
            brokers,
            # Standard output is for the result, where a program reads it.
            tell=(lambda line: typer.echo(line, err=True)) if as_json else print_line,
        )
        with _sigterm_interrupts():
            outcome = drill.run()
    show(_describe(settings.region, outcome), as_json=as_json, people=lambda: _tell(outcome))
    if not outcome.verdict.holds or outcome.unsteady:
        raise typer.Exit(ERROR)


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C: the drill ends its cut and removes its topic before the command
    ends."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _describe_forecast(one: "TopicForecast") -> Json:
    return {
        "topic": one.topic,
        "partitions": one.partitions,
        "led_there": one.led,
        "take_no_writes": one.stopped,
        "may_lose_writes": one.exposed,
        "voters_leave": one.voters_leave,
        "observers_stand_in": one.stand_ins,
    }


def _tell_forecast(
    name: str,
    brokers: list[int],
    found: "list[TopicForecast]",
    groups: "GroupsForecast",
    *,
    decides: bool,
) -> None:
    print_line(f"without {name} (brokers {ids(brokers)}):")
    hurt = [one for one in found if one.stopped or one.exposed]
    led = sum(one.led for one in found)
    print_line(f"  partitions led there: {led}")
    print_line(
        f"  consumer groups coordinated there: {groups.coordinated}; {groups.stopped} of them "
        "cannot commit until it returns"
    )
    if not decides:
        print_line("  the controller has no quorum: no topics, no moves, no new producers")
    for what, names in _ways_on(found):
        print_line(f"  {what}: {names}")
    if not hurt:
        print_line("  every topic continues; no acknowledged write is at risk")
        return
    rows = [
        (one.topic, one.partitions, one.stopped, one.exposed) for one in hurt[:TOPICS_SHOWN_MAX]
    ]
    heads = ("TOPIC", "PARTITIONS", "TAKE NO WRITES", "MAY LOSE WRITES")
    print_table(Table(heads=heads, rows=rows, right=frozenset(heads[1:])))
    if len(hurt) > TOPICS_SHOWN_MAX:
        print_line(f"and {len(hurt) - TOPICS_SHOWN_MAX} more topics")


def _ways_on(found: "list[TopicForecast]") -> Iterator[tuple[str, str]]:
    """Partitions that continue by other means than an election: the means, and the topics."""
    for what, counts in (
        ("continue after voters have left", [(one.topic, one.voters_leave) for one in found]),
        ("continue after observers stand in", [(one.topic, one.stand_ins) for one in found]),
    ):
        names = [f"{topic} ({count})" for topic, count in counts if count]
        if names:
            more = len(names) - TOPICS_SHOWN_MAX
            shown = ", ".join(names[:TOPICS_SHOWN_MAX])
            yield f"partitions that {what}", shown + (f" and {more} more" if more > 0 else "")


def _describe_place(one: "Place") -> Json:
    return {
        "partition": one.partition,
        "offset": None if one.offset < 0 else one.offset,
        "value": one.value.decode(),
    }


def _describe(name: str, outcome: "Outcome") -> Json:
    from strandline.cli.drill.verdict import EXAMPLES_MAX

    verdict = outcome.verdict
    return {
        "done": True,
        "region": name,
        "brokers": list(outcome.brokers),
        "rpo_records": len(verdict.lost),
        "acknowledged": verdict.acknowledged_count,
        "consumed": verdict.consumed_count,
        "found": verdict.found_count,
        "retracted": len(verdict.retracted),
        "duplicates": verdict.duplicate_count,
        "given_up": outcome.given_up_count,
        "lost_examples": [_describe_place(one) for one in verdict.lost[:EXAMPLES_MAX]],
        "retracted_examples": [_describe_place(one) for one in verdict.retracted[:EXAMPLES_MAX]],
        "led_there": outcome.led_there_count,
        "producer_rto_ms": outcome.producer_rto_ms,
        "consumer_rto_ms": outcome.consumer_rto_ms,
        "group_rto_ms": outcome.group_rto_ms,
        "steady_after_ms": outcome.steady_after_ms,
        "unsteady": list(outcome.unsteady),
        "partitions": [
            {
                "partition": one.partition,
                "leader_before": one.leader,
                "producer_longest_ms": one.producer_longest_ms,
                "producer_p50_ms": one.producer_p50_ms,
                "consumer_longest_ms": one.consumer_longest_ms,
                "consumer_p50_ms": one.consumer_p50_ms,
            }
            for one in outcome.waits
        ],
        "groups": [
            {
                "group": one.group,
                "coordinator_before": one.coordinator,
                "expected": _expected(goes_on=one.goes_on),
                "commit_longest_ms": one.longest_ms,
                "commit_p50_ms": one.p50_ms,
                "joined_anew": one.joined,
            }
            for one in outcome.groups
        ],
    }


def _expected(*, goes_on: bool) -> str:
    return "goes on elsewhere" if goes_on else "waits until it is back"


def _tell_groups(outcome: "Outcome") -> None:
    if not outcome.groups:
        print_line("no group was measured: these brokers led no partition of __consumer_offsets")
        return
    heads = (
        "GROUP", "COORDINATOR BEFORE", "EXPECTED", "COMMIT WAITED MS", "P50 MS", "JOINED ANEW",
    )  # fmt: skip
    rows = [
        (
            one.group, one.coordinator, _expected(goes_on=one.goes_on), one.longest_ms, one.p50_ms,
            one.joined,
        )
        for one in outcome.groups
    ]  # fmt: skip
    print_table(Table(heads=heads, rows=rows, right=frozenset((heads[1], *heads[3:]))))


def _tell(outcome: "Outcome") -> None:
    from strandline.cli.drill.verdict import EXAMPLES_MAX

    verdict = outcome.verdict
    heads = (
        "PARTITION", "LEADER BEFORE", "PRODUCER WAITED MS", "P50 MS", "CONSUMER WAITED MS",
        "P50 MS",
    )  # fmt: skip
    rows = [
        (
            one.partition, one.leader, one.producer_longest_ms, one.producer_p50_ms,
            one.consumer_longest_ms, one.consumer_p50_ms,
        )
        for one in outcome.waits
    ]  # fmt: skip
    print_table(Table(heads=heads, rows=rows, right=frozenset(heads)))
    _tell_groups(outcome)
    if outcome.unsteady:
        print_line(f"not as before after {outcome.steady_after_ms / 1000:.1f} s:")
        for line in outcome.unsteady[:TOPICS_SHOWN_MAX]:
            print_line(f"  {line}")
    else:
        print_line(f"as before {outcome.steady_after_ms / 1000:.1f} s after its return")
    for what, places in (("lost", verdict.lost), ("retracted", verdict.retracted)):
        for one in places[:EXAMPLES_MAX]:
            at = "?" if one.offset < 0 else one.offset
            print_line(f"{what}: partition {one.partition}, offset {at}: {one.value.decode()}")
    print_line(
        f"RPO: {len(verdict.lost)} of {verdict.acknowledged_count} acknowledged records lost; "
        f"{len(verdict.retracted)} of {verdict.consumed_count} consumed ones retracted; "
        f"{verdict.duplicate_count} duplicates; {outcome.given_up_count} given up"
    )
    groups = "" if outcome.group_rto_ms is None else f", groups {outcome.group_rto_ms} ms"
    print_line(
        f"RTO: producers waited at most {outcome.producer_rto_ms} ms, "
        f"consumers {outcome.consumer_rto_ms} ms{groups}"
    )
    if not outcome.led_there_count:
        print_line(
            "warning: the region led none of the drill's partitions, so the figures do not "
            "show how long clients wait for a new leader"
        )
