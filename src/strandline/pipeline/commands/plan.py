"""`strandline pipeline plan`: what placement policies are worth, by simulated losses."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer

from strandline.base.errors import OperatorError
from strandline.pipeline.commands.options import (
    ConfOption,
    JarsOption,
    JsonOption,
    Reached,
    find_cluster,
    session_options,
)
from strandline.pipeline.commands.output import screen, write_json, write_line
from strandline.pipeline.commands.plan_options import (
    AssumptionsOption,
    ClusterArgument,
    EventsOption,
    PartitionsOption,
    PlanMasterOption,
    PlotsOption,
    PolicyOption,
    ProcessesOption,
    ReportOption,
    RunningOption,
    SeedOption,
)
from strandline.pipeline.runtime.session import is_submitted, open_session

if TYPE_CHECKING:
    from strandline.pipeline.plan.results import Results
    from strandline.pipeline.plan.runs import OnProgress
    from strandline.pipeline.plan.trials import Plan, TrialRow

EVENTS = 100_000
PARTITIONS = 60


def plan(
    context: typer.Context,
    cluster: ClusterArgument = None,
    *,
    policy: PolicyOption = None,
    assumptions: AssumptionsOption = None,
    events: EventsOption = EVENTS,
    partitions: PartitionsOption = PARTITIONS,
    seed: SeedOption = 1,
    report: ReportOption = None,
    plots: PlotsOption = None,
    bootstrap: RunningOption = "",
    processes: ProcessesOption = None,
    master: PlanMasterOption = "",
    jars: JarsOption = None,
    conf: ConfOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare placement policies by thousands of simulated losses of regions, zones and brokers:
    availability, losses of records, bytes between regions and money, with intervals."""
    from strandline.pipeline.plan.results import results_of
    from strandline.pipeline.reports.page import check_writable

    for file in (report, plots and plots / "a.png"):
        if file is not None:
            check_writable(file)
    running = cluster is None  # A file needs no brokers, nor how they are reached.
    reached = find_cluster(context, bootstrap, required=False) if running else Reached("", None)
    made = _made(cluster, reached, policy or [], assumptions, partitions=partitions, seed=seed)
    trials = made.trials_for(events)
    started = time.monotonic()
    if master or is_submitted():
        rows = _on_spark(made, trials, master=master, jars=jars, conf=conf)
    else:
        rows = _here(made, trials, processes)
    with screen().status("computing intervals") as status:
        results = results_of(made, rows)
        took_ms = round((time.monotonic() - started) * 1000)
        if report is not None or plots is not None:
            status.update("drawing plots")
        written = _write_files(results, made, report, plots)
    if as_json:
        write_json({**json_of(results), "took_ms": took_ms})
        return
    write_line(
        f"{results.losses:,} losses in {results.trials:,} years of {results.brokers} brokers, "
        f"{took_ms / 1000:.1f} s"
    )
    draw(results)
    for file in written:
        write_line(f"wrote {file}")


def _made(
    file: Path | None,
    reached: Reached,
    policies: list[str],
    assumptions: Path | None,
    *,
    partitions: int,
    seed: int,
) -> "Plan":
    """Everything read, checked and placed."""
    from strandline.pipeline.plan.alternatives import parse_alternatives, place
    from strandline.pipeline.plan.assumptions import Assumptions, decode_assumptions
    from strandline.pipeline.plan.clusters import cluster_of_brokers, cluster_of_file, read_text
    from strandline.pipeline.plan.traffic import check_regions
    from strandline.pipeline.plan.trials import Plan
    from strandline.placement.topology.universe import Universe

    if file is None and not reached.bootstrap:
        raise OperatorError("no cluster: name a CLUSTER_FILE, or --bootstrap of a running cluster")
    cluster = (
        cluster_of_brokers(reached.bootstrap, reached.access)
        if file is None
        else cluster_of_file(file)
    )
    assumed = Assumptions()
    source = "the built-in assumptions" if assumptions is None else str(assumptions)
    if assumptions is not None:
        assumed = decode_assumptions(read_text(assumptions), source=source)
    alternatives = parse_alternatives(policies, cluster)
    universe = Universe(cluster.candidates)
    check_regions(assumed.traffic, assumed.prices, universe, source=source)
    config = assumed.config()
    placed = tuple(
        place(one, cluster, partitions=partitions, config=config, controllers=assumed.controllers)
        for one in alternatives
    )
    return Plan(universe.candidates, placed, assumed, seed)


def _here(made: "Plan", trials: int, processes: int | None) -> "list[TrialRow]":
    from strandline.pipeline.plan.runs import process_count, run_here

    with _progress(trials) as on_progress:
        count = min(processes or process_count(), trials)
        return run_here(made, trials, processes=count, on_progress=on_progress)


def _on_spark(
    made: "Plan", trials: int, *, master: str, jars: Path | None, conf: list[str] | None
) -> "list[TrialRow]":
    from strandline.pipeline.plan.runs import run_on_spark

    session = session_options("plan", master=master, jars=jars, conf=conf)
    with screen().status("starting Spark"):
        opened = open_session(session)
        spark = opened.__enter__()
    try:
        with _progress(trials) as on_progress:
            return run_on_spark(spark, made, trials, on_progress=on_progress)
    finally:
        opened.__exit__(None, None, None)


@contextmanager
def _progress(trials: int) -> "Iterator[OnProgress]":
    """A bar on the terminal, with the time that is left."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("simulating years"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=screen()) as bar:
        task = bar.add_task("", total=trials)
        yield lambda done: bar.update(task, completed=done)


def _write_files(
    results: "Results", made: "Plan", report: Path | None, plots: Path | None
) -> list[Path]:
    """The files that it wrote."""
    from strandline.pipeline.plan.report import (
        availability_chart,
        cost_chart,
        losses_chart,
        report_page,
    )
    from strandline.pipeline.reports.page import write_page

    written = []
    if report is not None:
        written.append(report)
        write_page(report, report_page(results, made.assumptions))
    if plots is not None:
        charts = {
            "availability": availability_chart,
            "cost-against-survival": cost_chart,
            "losses": losses_chart,
        }
        for name, chart in charts.items():
            written.append(plots / f"{name}.png")
            written[-1].write_bytes(chart(results).png())
    return written


def json_of(results: "Results") -> dict[str, object]:
    """The results for programs: estimates as {value, low, high, is_seen}."""
    policies: list[dict[str, object]] = []
    for one in results.outlooks:
        fields = asdict(one)
        fields["single_losses"] = msgspec.to_builtins(one.single_losses)
        fields["cost"] = asdict(one.cost)
        policies.append(fields)
    return {**asdict(results), "outlooks": policies}


def draw(results: "Results") -> None:
    """The results for people: estimates, and below each its interval."""
    from rich.console import Console
    from rich.table import Table

    from strandline.pipeline.plan.wording import (
        difference,
        format_hours,
        format_money,
        format_rate,
        format_share,
        unwritable_h,
        verdict,
    )

    heads = ("policy", "writes", "without writes, a year", "records lost", "cost, a year")
    drawn = Table(*heads, show_lines=True)
    for one in results.outlooks:
        cells = (
            format_share(one.writable),
            format_hours(unwritable_h(one)),
            format_rate(one.losses),
            format_money(one.cost, results.currency),
        )
        drawn.add_row(one.name, *(text.replace(" (", "\n(") for text in cells))
    Console().print(drawn)
    first, *others = results.outlooks
    for one in others:
        write_line(f"{one.name}: {difference(one, first)}")
    write_line(verdict(results))
