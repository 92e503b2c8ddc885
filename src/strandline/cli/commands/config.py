"""`strandline config`: check a broker's file, write the reference pages.

Source: docs/reference/cli.md; STYLE, "Configuration"."""

import os
from pathlib import Path
from typing import Annotated

import typer

from strandline.cli.options import AsJson
from strandline.cli.output import print_error, print_line, show

app = typer.Typer(help="Check configuration; write its reference.", no_args_is_help=True)


@app.command()
def check(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A broker's TOML file.", readable=False)
    ],
    as_json: AsJson = False,
) -> None:
    """Report every mistake in a broker's file and environment."""
    from strandline.cli.exit_codes import ERROR
    from strandline.cli.server.broker_file import read_file
    from strandline.cli.server.labels import configured_labels, label_mistake, tell_origin
    from strandline.config.load import Mistake, read_broker_config
    from strandline.placement.topology.labels import merge_labels

    environment = dict(os.environ)
    config, mistakes = read_broker_config(read_file(file), file=str(file), environment=environment)
    wrong = None if config is None else label_mistake(config, environment)
    if wrong is not None:
        # What the environment says is not in the file.
        source = "" if wrong.startswith("environment") else str(file)
        mistakes, config = [Mistake(source, "", wrong)], None
    if config is not None:
        from strandline.cli.server.certificates import certificate_mistakes, secret_mistakes

        found = certificate_mistakes(config) + secret_mistakes(config)
        mistakes = [Mistake(str(file), "", one) for one in found]
        config = None if mistakes else config
    labels = None if config is None else merge_labels(configured_labels(config, environment))

    def people() -> None:
        for mistake in mistakes:
            print_error(str(mistake))
        if config is not None:
            print_line(f"{file}: broker {config.broker_id}: no mistakes")
        for line in tell_origin(labels) if labels is not None else ():
            print_line(f"label {line}")

    show(
        {
            "file": str(file),
            "ok": config is not None,
            "mistakes": [
                {"source": one.source, "key": one.place, "reason": one.reason} for one in mistakes
            ],
            "labels": None if labels is None else {**labels.labels.as_dict()},
            "origin": None if labels is None else {**labels.origin},
        },
        as_json=as_json,
        people=people,
    )
    if config is None:
        raise typer.Exit(ERROR)


@app.command()
def reference(
    context: typer.Context,
    write: Annotated[
        Path, typer.Option("--write", metavar="DIR", help="Directory to write the pages into.")
    ],
    as_json: AsJson = False,
) -> None:
    """Write the reference pages: every configuration key, command, metric and API."""
    from strandline.admin.metrics_page import PAGE, render_metrics_page
    from strandline.base.errors import OperatorError
    from strandline.broker.apis_page import PAGE as APIS_PAGE
    from strandline.broker.apis_page import render_apis_page
    from strandline.cli.reference import render_cli_page
    from strandline.config.reference import render_pages

    pages = {
        **render_pages(),
        "cli.md": render_cli_page(context.find_root().command),
        PAGE: render_metrics_page(),
        APIS_PAGE: render_apis_page(),
    }
    try:
        write.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            (write / name).write_text(text)
    except OSError as error:
        raise OperatorError(f"{write}: cannot write: {error.strerror}") from error
    paths = [str(write / name) for name in pages]

    def people() -> None:
        for one in paths:
            print_line(one)

    show({"written": paths}, as_json=as_json, people=people)
