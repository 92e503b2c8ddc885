"""`strandline`: the app, and how it reports errors.

Why:    an error is a line on standard error, with its details in lines below, and an exit code with
        a meaning; a broker that is down causes no traceback.
How:    each command group is a file in commands/. Help is plain text, because rich would double the
        time of `--help`.
Source: STYLE, "Errors"; reference ecosystem 5 (exit codes)."""

import os
import sys
from collections.abc import Sequence

import typer

from strandline.base.errors import StrandlineError
from strandline.cli.commands import (
    acl,
    broker,
    cluster,
    config,
    consume,
    dev,
    doctor,
    drill,
    group,
    http_token,
    log,
    partition,
    policy,
    produce,
    quota,
    replica,
    restore,
    serve,
    tiered,
    topic,
    user,
    version,
    zone,
)
from strandline.cli.exit_codes import CANNOT_CONNECT, ERROR, INTERRUPTED
from strandline.cli.options import find_bootstrap, find_client_config
from strandline.cli.output import print_error
from strandline.cli.parameters import read_plainly
from strandline.client.command_line import take_client_config

NO_RIGHT = (
    'no rule allows it to this user, or one denies it: see "Rules" in docs/operating/'
    "security-rules.md; the broker's audit log names the right"
)
"""What a refusal leaves open: clients learn no more of it."""

app = typer.Typer(
    name="strandline",
    help="A Kafka-compatible log that spans regions.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("serve")(serve.serve)
app.add_typer(dev.app, name="dev")
app.add_typer(topic.app, name="topic")
app.add_typer(partition.app, name="partition")
app.add_typer(replica.app, name="replica")
app.command("produce")(produce.produce)
app.command("consume")(consume.consume)
app.add_typer(group.app, name="group")
app.add_typer(log.app, name="log")
app.add_typer(config.app, name="config")
app.add_typer(policy.app, name="policy")
app.add_typer(tiered.app, name="tiered")
app.add_typer(cluster.app, name="cluster")
app.add_typer(drill.app, name="drill")
app.add_typer(broker.app, name="broker")
app.add_typer(user.app, name="user")
app.add_typer(acl.app, name="acl")
app.add_typer(http_token.app, name="http-token")
app.add_typer(doctor.app, name="doctor")
app.add_typer(quota.app, name="quota")
app.add_typer(zone.app, name="zone")
app.command("restore")(restore.restore)
app.command("version")(version.version)


@app.command(
    "pipeline",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
def pipeline(context: typer.Context) -> None:
    """Load topics into lake tables with Spark. `strandline pipeline --help` lists its commands."""
    # A group of its own room: imported when it is asked for, because it imports a lot.
    from strandline.pipeline.commands.app import app as pipeline_app
    from strandline.pipeline.commands.options import LocalCluster

    local = LocalCluster(find_bootstrap, find_client_config)
    pipeline_app(args=context.args, prog_name="strandline pipeline", obj=local)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; ends with SystemExit."""
    read_plainly()
    try:
        given = sys.argv[1:] if arguments is None else arguments
        app(args=take_client_config(given), prog_name="strandline")
    except StrandlineError as error:
        print_error(str(error), error.details or help_of(error))
        sys.exit(exit_code_of(error))
    except BrokenPipeError:
        # The reader of a pipe has gone: nothing is wrong, but the interpreter must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ERROR)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def help_of(error: StrandlineError) -> Sequence[str]:
    """What to do about a refusal for want of a right; empty for other errors."""
    from strandline.client.rights import is_refused

    return (NO_RIGHT,) if is_refused(error) else ()


def exit_code_of(error: StrandlineError) -> int:
    """The exit code for an error."""
    from strandline.client.errors import CannotConnectError

    return CANNOT_CONNECT if isinstance(error, CannotConnectError) else ERROR


if __name__ == "__main__":
    main()
