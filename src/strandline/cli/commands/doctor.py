"""`strandline doctor`: names what is open; `doctor_settings.py` names what must agree and does not.

Source: docs/operating/security.md, "What is open"; decision 0069."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.errors import StrandlineError
from strandline.base.json_value import Json
from strandline.cli.commands import doctor_settings
from strandline.cli.exit_codes import ERROR
from strandline.cli.options import DEFAULT_TIMEOUT_S, AsJson, Bootstrap, Timeout, open_client
from strandline.cli.output import Table, counted, print_line, print_table, show

if TYPE_CHECKING:
    from strandline.client.cluster import Client
    from strandline.client.operations.doctor import Told
    from strandline.security.doctor.finding import Finding

app = typer.Typer(help="Judge a configuration or a cluster.", no_args_is_help=True)

Placed = tuple[str, "Finding"]
"""Where it was found (a file, a broker, the cluster), and the finding."""
CLUSTER = "cluster"


app.command("settings")(doctor_settings.settings)


@app.command()
def security(
    config: Annotated[
        list[Path] | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="A broker's file, in place of a running cluster; may be repeated.",
            readable=False,
        ),
    ] = None,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Name what is open, of brokers' files or of a running cluster."""
    from strandline.security.doctor.finding import LEVELS, Level

    found: list[Placed] = []
    if config:
        for path in config:
            found += [(str(path), one) for one in _of_file(path)]
    else:
        with open_client(bootstrap, timeout) as client:
            found = _of_cluster(client)
    found.sort(key=lambda one: LEVELS.index(one[1].level))
    open_count = sum(one.level is Level.OPEN for _, one in found)

    def people() -> None:
        rows = [(one.level, where, str(one)) for where, one in found]
        if rows:
            print_table(Table(("LEVEL", "WHERE", "FINDING"), rows))
        print_line(f"{counted(open_count, 'thing')} open, {counted(len(found), 'finding')}")

    told: list[Json] = [
        {
            "level": str(one.level),
            "where": where,
            "key": one.key,
            "finding": one.what,
            "advice": one.advice,
        }
        for where, one in found
    ]
    show(told, as_json=as_json, people=people)
    if open_count:
        raise typer.Exit(ERROR)


def _of_file(path: Path) -> "list[Finding]":
    from strandline.cli.server.broker_file import load_file
    from strandline.security.doctor.broker_file import file_findings
    from strandline.security.doctor.file_facts import read_facts

    config = load_file(path, environment=dict(os.environ))
    return file_findings(
        config, read_facts(config, path), file=str(path), now_ms=time.time_ns() // 1_000_000
    )


def _of_cluster(client: "Client") -> list[Placed]:
    from strandline.client.operations.doctor import Told, ask_brokers
    from strandline.security.doctor.finding import Finding, Level

    found: list[Placed] = []
    told = Told()
    try:
        told = ask_brokers(client)
    except StrandlineError as error:
        note = Finding(
            Level.NOTE,
            "--client-config",
            f"this client may not see how brokers are configured ({error})",
            "name a file of a user who may describe the cluster",
        )
        found.append((CLUSTER, note))
    found += _of_strangers(client, told)
    found += _of_brokers(told)
    return [*found, *_of_access(client, told)]


def _of_strangers(client: "Client", told: "Told") -> list[Placed]:
    """What a client without a login gets, at every address that is known."""
    from strandline.client.errors import CannotConnectError
    from strandline.client.operations.doctor import meet_stranger
    from strandline.config.addresses import format_address, parse_address
    from strandline.security.doctor.cluster import stranger_findings
    from strandline.security.doctor.described import advertised

    addresses = dict.fromkeys((*client.bootstrap, *told.addresses))
    addresses |= dict.fromkeys(
        parse_address(one) for values in told.configs.values() for one in advertised(values)
    )
    found: list[Placed] = []
    failures: list[CannotConnectError] = []
    for address in addresses:
        try:
            findings = stranger_findings(meet_stranger(address))
        except CannotConnectError as error:
            failures.append(error)
            continue
        found += [(format_address(address), one) for one in findings]
    if len(failures) == len(addresses):
        raise failures[0]
    return found


def _of_brokers(told: "Told") -> list[Placed]:
    """Findings of the files of running brokers; what several have stands once."""
    from strandline.security.doctor.broker_file import key_findings
    from strandline.security.doctor.described import described_config

    owners: dict[Finding, list[str]] = {}
    for broker, values in told.configs.items():
        try:
            config = described_config(values)
        except (KeyError, ValueError):
            continue  # Of a release that describes itself in another way.
        for one in key_findings(config):
            owners.setdefault(one, []).append(str(broker))
    return [(f"broker {','.join(ids)}", one) for one, ids in owners.items()]


def _of_access(client: "Client", told: "Told") -> list[Placed]:
    """Findings of rules, users and quotas, if this client may see them."""
    from strandline.client.operations.doctor import has_default_quota
    from strandline.client.operations.rules import list_rules
    from strandline.client.operations.users import list_users
    from strandline.security.acls.rule_filter import RuleFilter
    from strandline.security.doctor.cluster import ClusterAccess, access_findings

    if not any(one.get("access.enforce_rules") == "true" for one in told.configs.values()):
        return []
    supers = [values.get("access.super_users", "") for values in told.configs.values()]
    try:
        access = ClusterAccess(
            rules=list_rules(client, RuleFilter()),
            users={one.name: one.mechanisms for one in list_users(client)},
            super_users=list(
                dict.fromkeys(one for text in supers for one in text.split(",") if one)
            ),
            has_default_quota=has_default_quota(client),
        )
    except StrandlineError:
        return []
    return [(CLUSTER, one) for one in access_findings(access)]
