"""`strandline doctor settings`: names settings that must be the same on all brokers and are not.

Source: docs/operating/brokers.md, "Settings that must agree"; `config.shared_keys`."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.errors import OperatorError
from strandline.base.json_value import Json
from strandline.cli.exit_codes import ERROR
from strandline.cli.options import DEFAULT_TIMEOUT_S, AsJson, Bootstrap, Timeout, open_client
from strandline.cli.output import Table, counted, print_line, print_table, show

if TYPE_CHECKING:
    from strandline.client.cluster import Client
    from strandline.config.shared_keys import Difference

FILES_MIN = 2


@dataclass(frozen=True, slots=True)
class Compared:
    """`values`: {broker's id or file: {key: value}}. `missing`: {broker's id: why it is not
    compared}."""

    values: Mapping[str, Mapping[str, str]]
    missing: Mapping[str, str] = field(default_factory=dict)
    are_files: bool = False

    def named(self, places: Sequence[str]) -> str:
        """`broker 3`, `brokers 1,2`, or the names of files."""
        if self.are_files:
            return ", ".join(places)
        return f"broker{'s' if len(places) > 1 else ''} {','.join(places)}"


def settings(
    config: Annotated[
        list[Path] | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="A broker's file; give those of all brokers, in place of a running cluster.",
            readable=False,
        ),
    ] = None,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Name settings that must be the same on all brokers and are not, of a running cluster or of
    brokers' files."""
    from strandline.config.shared_keys import Harm, differences

    if config:
        compared = _of_files(config)
    else:
        with open_client(bootstrap, timeout) as client:
            compared = _of_cluster(client)
    found = differences(compared.values)

    def people() -> None:
        rows = [(str(one.harm), one.key, _finding(one, compared)) for one in found]
        rows += [("note", f"broker {id}", why) for id, why in compared.missing.items()]
        if rows:
            print_table(Table(("LEVEL", "WHAT", "FINDING"), rows))
        verb = "differs" if len(found) == 1 else "differ"
        print_line(
            f"{counted(len(found), 'setting')} {verb}; "
            f"compared: {compared.named([*compared.values])}"
        )

    told: Json = {
        "compared": [*compared.values],
        "not_compared": dict(compared.missing),
        "findings": [
            {
                "level": str(one.harm),
                "key": one.key,
                "values": {value: [*places] for value, places in one.places.items()},
                "finding": one.what,
                "advice": _advice(one, compared),
            }
            for one in found
        ],
    }
    show(told, as_json=as_json, people=people)
    if any(one.harm is Harm.WRONG for one in found):
        raise typer.Exit(ERROR)


def _of_files(paths: Sequence[Path]) -> Compared:
    from strandline.cli.server.broker_file import load_file
    from strandline.config.effective import broker_values

    files = {str(path): path for path in paths}
    if len(files) < FILES_MIN:
        raise OperatorError("nothing to compare: give --config once for each broker's file")
    environment = dict(os.environ)
    values = {}
    for name, path in files.items():
        config = load_file(path, environment=environment)
        values[name] = {one.key.name: one.value or "" for one in broker_values(config, {}, {})}
    return Compared(values, are_files=True)


def _of_cluster(client: "Client") -> Compared:
    from strandline.client.operations.doctor import ask_brokers, silent_brokers
    from strandline.client.rights import naming_right
    from strandline.model.access import Kind, Operation

    with naming_right(client, Operation.DESCRIBE_CONFIGS, Kind.CLUSTER):
        told = ask_brokers(client)
    missing = {id: f"is not compared: {error}" for id, error in told.failures.items()}
    for id in silent_brokers(client, told):
        missing.setdefault(id, "is silent, and not compared: compare the files with --config")
    return Compared(
        {str(id): one for id, one in sorted(told.configs.items())},
        {str(id): why for id, why in sorted(missing.items()) if id not in told.configs},
    )


def _finding(one: "Difference", compared: Compared) -> str:
    """The values and who has them, what happens, what to do."""
    word = "in" if compared.are_files else "on"
    values = "; ".join(
        f"{value or 'empty'} {word} {compared.named(places)}"
        for value, places in one.places.items()
    )
    return f"{values}: {one.what}: {_advice(one, compared)}"


def _advice(one: "Difference", compared: Compared) -> str:
    """What to do. During a change the most frequent value may be the old one."""
    from strandline.config.shared_keys import Harm

    usual = one.usual
    if one.harm is Harm.NOTE or usual is None:
        return "write one value in the files of all brokers, and restart one broker after the other"
    odd = [place for value, places in one.places.items() if value != usual for place in places]
    where = compared.named(odd) if compared.are_files else f"the file of {compared.named(odd)}"
    single = "its broker" if compared.are_files else "that broker"
    restart = single if len(odd) == 1 else "one broker after the other"
    return (
        f"write the value of {compared.named(one.places[usual])} in {where}, and restart {restart}"
    )
