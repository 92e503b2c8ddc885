"""`strandline serve`: run one broker.

Source: docs/reference/cli.md."""

import os
from pathlib import Path
from typing import Annotated

import typer


def serve(
    config: Annotated[
        # Whether it can be read is found out by reading it: one line instead of a usage.
        Path,
        typer.Option("--config", metavar="FILE", help="The broker's TOML file.", readable=False),
    ],
) -> None:
    """Run one broker until SIGTERM or Ctrl-C."""
    from strandline.cli.server.serve import serve_file

    raise typer.Exit(serve_file(config, environment=dict(os.environ)))
