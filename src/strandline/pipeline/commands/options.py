"""The options of the pipeline commands, each with its help, by name.

Why:    two commands share most of them, and a command should read as what it does."""

from pathlib import Path
from typing import Annotated

import typer

from strandline.base.errors import OperatorError
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
TableArgument = Annotated[
    str, typer.Argument(help="Directory or URI of the Delta table.", metavar="TABLE")
]
BootstrapOption = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        "-b",
        envvar="STRANDLINE_BOOTSTRAP",
        help="Brokers of the cluster; default: the local one.",
        metavar="HOST:PORT,...",
    ),
]
BucketsOption = Annotated[
    str | None,
    typer.Option(
        help="Buckets that tiered records come from, as in [tiered] buckets of a broker's file.",
        metavar="REGION=URL,...",
    ),
]
BucketCredentialsOption = Annotated[
    str,
    typer.Option(
        help="File of each executor with the buckets' credentials; default: its environment.",
        metavar="FILE",
    ),
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


def find_bootstrap(context: typer.Context) -> str:
    """The default brokers, as the command line above finds them; spark-submit has none."""
    if not callable(context.obj):
        raise OperatorError("which cluster? give --bootstrap or set STRANDLINE_BOOTSTRAP")
    return str(context.obj())
