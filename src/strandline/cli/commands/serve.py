"""`strandline serve`: run one broker, or the brokers of a machine.

Source: docs/reference/cli.md."""

import os
from pathlib import Path
from typing import Annotated

import typer

from strandline.cli.options import Cores


def serve(
    config: Annotated[
        # Whether it can be read is found out by reading it: one line instead of a usage.
        Path,
        typer.Option("--config", metavar="FILE", help="The broker's TOML file.", readable=False),
    ],
    cores: Cores = None,
) -> None:
    """Run one broker, or the N brokers of a machine, until SIGTERM or Ctrl-C."""
    if cores is not None:
        from strandline.cli.machine.serve_machine import serve_machine

        raise typer.Exit(serve_machine(config, cores=cores, environment=dict(os.environ)))
    from strandline.cli.server.serve import serve_file

    raise typer.Exit(serve_file(config, environment=dict(os.environ)))
