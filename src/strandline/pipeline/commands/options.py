"""The options of the pipeline commands, each with its help, by name.

Why:    two commands share most of them, and a command should read as what it does."""

from pathlib import Path
from typing import Annotated

import typer

from strandline.pipeline.runtime.jars import JARS_VARIABLE, default_directory
from strandline.pipeline.runtime.session import SessionOptions
from strandline.pipeline.settings import parse_settings

MasterOption = Annotated[
    str,
    typer.Option(
        "--master", help="Spark master; spark-submit's own takes precedence.", metavar="URL"
    ),
]
JarsOption = Annotated[
    Path | None,
    typer.Option(
        "--jars",
        help=f"Directory of the connector's jars, filled if it lacks them (${JARS_VARIABLE}; "
        "default: the user's cache).",
        metavar="DIR",
    ),
]
ConfOption = Annotated[
    list[str] | None, typer.Option("--conf", help="A Spark setting.", metavar="KEY=VALUE")
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
TableArgument = Annotated[str, typer.Argument(help="Directory or URI of the Delta table.")]
BootstrapOption = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        "-b",
        envvar="STRANDLINE_BOOTSTRAP",
        help="Brokers of the cluster.",
        metavar="HOST:PORT,...",
    ),
]
SchemaOption = Annotated[
    Path | None,
    typer.Option(
        help="File with the fields of the JSON values, as Spark DDL; default: bytes.",
        metavar="FILE",
    ),
]
PartitionByOption = Annotated[
    list[str] | None,
    typer.Option(
        help="A field of the value, or NAME=SQL; repeatable. Default: date=to_date(timestamp).",
        metavar="NAME[=SQL]",
    ),
]
CheckpointOption = Annotated[
    str, typer.Option(help="Where the job keeps its progress; default: in the table.")
]
BatchRecordsOption = Annotated[int, typer.Option(help="Maximum records per commit of the table.")]
FilesOption = Annotated[int, typer.Option(help="Maximum files per commit in each table partition.")]
ContinuousOption = Annotated[
    bool, typer.Option("--continuous", help="Follow the topic until interrupted.")
]
IntervalOption = Annotated[int, typer.Option(help="With --continuous: time between batches.")]
RackOption = Annotated[
    str | None, typer.Option(help="The region to read from, if replicas may serve reads.")
]
KafkaOption = Annotated[
    list[str] | None,
    typer.Option(help="A property of the Kafka client; repeatable.", metavar="KEY=VALUE"),
]
ByOption = Annotated[
    list[str] | None,
    typer.Option("--by", help="Column or SQL to group means by; repeatable.", metavar="SQL"),
]
MeanOption = Annotated[
    str | None,
    typer.Option("--mean", help="Number to average, by group.", metavar="SQL"),
]


def session_options(
    name: str, *, master: str, jars: Path | None, conf: list[str] | None
) -> SessionOptions:
    """The session that --master, --jars and --conf describe, for the job `name`."""
    return SessionOptions(
        name=f"strandline {name}",
        jars_directory=jars or default_directory(),
        master=master,
        conf=parse_settings(conf or (), option="--conf"),
    )
