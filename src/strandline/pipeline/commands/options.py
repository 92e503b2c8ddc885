"""The options of the pipeline commands, each with its help, by name.

Why:    two commands share most of them, and a command should read as what it does."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from strandline.base.errors import OperatorError
from strandline.client.access import Access, find_file
from strandline.client.command_line import CLIENT_CONFIG_VARIABLE
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


@dataclass(frozen=True, slots=True)
class LocalCluster:
    """What the command line above knows of the cluster here: its brokers, and how its
    administrator logs in, given the brokers that the command names."""

    bootstrap: Callable[[], str]
    client_config: Callable[[str], Path | None]


@dataclass(frozen=True, slots=True)
class Reached:
    """A cluster, and how it is reached. `access`: None over plain connections."""

    bootstrap: str
    access: Access | None

    @property
    def words(self) -> dict[str, Any]:
        """Both, as the options of jobs have them."""
        return {"bootstrap": self.bootstrap, "access": self.access}


def find_cluster(context: typer.Context, bootstrap: str, *, required: bool = True) -> Reached:
    """The cluster of a command: --bootstrap, else the client's configuration, else the local one,
    which spark-submit has not. Raises OperatorError; unless `required`, it may be empty."""
    local = context.obj if isinstance(context.obj, LocalCluster) else None
    if local is None:
        named = os.environ.get(CLIENT_CONFIG_VARIABLE)
        file = Path(named) if named else None
    else:
        file = local.client_config(bootstrap)
    access, configured = None, ""
    if file is not None:
        found = find_file(str(file))
        access = Access(str(found.absolute() if found.exists() else file))
        configured = access.read().bootstrap
    text = bootstrap or configured
    if not text and required:
        if local is None:
            raise OperatorError(
                "which cluster? give --bootstrap or set STRANDLINE_BOOTSTRAP, or write "
                "bootstrap.servers into --client-config"
            )
        text = local.bootstrap()
    return Reached(text, access)
