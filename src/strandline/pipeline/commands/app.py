"""`strandline pipeline`: the app with all its commands, and how it reports errors.

Why:    one list of the commands; a new one is a file here and a line below."""

import sys

import typer

from strandline.base.errors import StrandlineError
from strandline.client.command_line import take_client_config
from strandline.pipeline.commands import (
    aggregate,
    audit,
    backfill,
    jars,
    java,
    lake,
    plan,
    replay,
    upkeep,
)

app = typer.Typer(
    name="pipeline",
    help="Topics into lake tables with Spark, here or on a cluster.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("lake")(lake.lake)
app.command("backfill")(backfill.backfill)
app.command("aggregate")(aggregate.aggregate)
app.command("replay")(replay.replay)
app.command("upkeep")(upkeep.upkeep)
app.command("audit")(audit.audit)
app.command("plan")(plan.plan)
app.command("jars")(jars.jars)
app.command("java")(java.java)


def main() -> None:
    """The command line as a program: an error is one line on stderr, exit code 1."""
    try:
        app(args=take_client_config(sys.argv[1:]), prog_name="strandline pipeline")
    except StrandlineError as error:
        for line in (f"error: {error}", *error.details):
            sys.stderr.write(f"{line}\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
