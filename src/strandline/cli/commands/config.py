"""`strandline config`: check a broker's file, write the reference pages.

Source: docs/reference/cli.md; STYLE, "Configuration"."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.cli.options import AsJson, Cores
from strandline.cli.output import ids, print_error, print_line, show

if TYPE_CHECKING:
    from strandline.config.broker import BrokerConfig

app = typer.Typer(help="Check configuration; write its reference.", no_args_is_help=True)


@app.command()
def check(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A broker's TOML file.", readable=False)
    ],
    cores: Cores = None,
    as_json: AsJson = False,
) -> None:
    """Report every mistake in a broker's file and environment. With --cores: in what the N brokers
    of a machine would make of it, and show each of them."""
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
    brokers: tuple[BrokerConfig, ...] = () if config is None else (config,)
    if config is not None and cores is not None:
        from strandline.config.cores import broken_machine_rules, derive_brokers

        rules = broken_machine_rules(config, cores)
        mistakes = [Mistake(str(file), place, reason) for place, reason in rules]
        brokers = () if mistakes else derive_brokers(config, cores)
    if brokers:
        from strandline.cli.server.certificates import certificate_mistakes, secret_mistakes

        found = [one for each in brokers for one in certificate_mistakes(each)]
        found += secret_mistakes(brokers[0])
        mistakes = [Mistake(str(file), "", one) for one in dict.fromkeys(found)]
    config = None if mistakes else config
    labels = None if config is None else merge_labels(configured_labels(config, environment))

    def people() -> None:
        for mistake in mistakes:
            print_error(str(mistake))
        if config is not None:
            named = ids([one.broker_id for one in brokers])
            noun = "broker" if len(brokers) == 1 else "brokers"
            print_line(f"{file}: {noun} {named}: no mistakes")
        for one in brokers if config is not None and cores is not None else ():
            print_line(_place_of(one))
        for line in tell_origin(labels) if labels is not None else ():
            print_line(f"label {line}")

    show(
        {
            "file": str(file),
            "ok": config is not None,
            "mistakes": [
                {"source": one.source, "key": one.place, "reason": one.reason} for one in mistakes
            ],
            "brokers": [] if config is None else [one.broker_id for one in brokers],
            "labels": None if labels is None else {**labels.labels.as_dict()},
            "origin": None if labels is None else {**labels.origin},
        },
        as_json=as_json,
        people=people,
    )
    if config is None:
        raise typer.Exit(ERROR)


def _place_of(broker: "BrokerConfig") -> str:
    """A broker of a machine: where it listens, and its directory."""
    clients = ", ".join(f"{one.name} {one.bind}" for one in broker.listeners)
    http = f", HTTP {broker.metrics.host}:{broker.metrics.port}" if broker.metrics.port else ""
    return (
        f"broker {broker.broker_id}: {clients}, brokers {broker.rpc_bind}{http}, "
        f"{broker.broker.data_directory}"
    )


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
