"""The options of `strandline pipeline plan`, each with its help.

Why:    a command should read as what it does."""

from pathlib import Path
from typing import Annotated

import typer

EVENTS_MAX = 100_000_000

ClusterArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="[CLUSTER_FILE]",
        help="Brokers and round trips, as for `strandline policy test --cluster`; without it, the "
        "running cluster of --bootstrap.",
    ),
]
PolicyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        help="A policy to compare; repeatable: a file, 3+2+1 (voters by region), rf3, 'survive "
        "region'. Then ,min-insync=2 ,replicas=5 ,promotion=region-lost ,placement=2.",
        metavar="[NAME=]POLICY[,KEY=VALUE...]",
    ),
]
AssumptionsOption = Annotated[
    Path | None,
    typer.Option(
        "--assumptions",
        help="Rates of losses, traffic and prices, as TOML; default: built in.",
        metavar="FILE",
    ),
]
EventsOption = Annotated[
    int, typer.Option(min=1, max=EVENTS_MAX, help="Simulated losses, at least 20 years of them.")
]
PartitionsOption = Annotated[
    int, typer.Option("--partitions", "-p", min=1, max=10_000, help="Partitions of the topic.")
]
SeedOption = Annotated[int, typer.Option(min=0, help="Another one draws other losses.")]
ReportOption = Annotated[
    Path | None, typer.Option(help="Write an HTML page with plots.", metavar="FILE")
]
PlotsOption = Annotated[
    Path | None, typer.Option(help="Write the plots as PNG files here.", metavar="DIR")
]
RunningOption = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        "-b",
        envvar="STRANDLINE_BOOTSTRAP",
        help="Brokers of the running cluster.",
        metavar="HOST:PORT,...",
    ),
]
ProcessesOption = Annotated[
    int | None,
    typer.Option(min=1, max=1_024, help="Processes of this machine; default: its processors."),
]
PlanMasterOption = Annotated[
    str,
    typer.Option(
        "--master",
        help="Run on this Spark master; default: processes of this machine. spark-submit's own "
        "takes precedence.",
        metavar="URL",
    ),
]
