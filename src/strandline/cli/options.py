"""Options that many commands share, and how they find a cluster.

How:    security: `--client-config FILE` anywhere on the command line, else the file that
        STRANDLINE_CLIENT_CONFIG names.
        brokers: `--bootstrap`, else STRANDLINE_BOOTSTRAP, else `bootstrap.servers` of that file,
        else the local cluster in the directory that `strandline dev` would use, else
        127.0.0.1:9092.
        a broker's file: `--config`, else one of that local cluster.
Source: docs/reference/cli.md."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.errors import OperatorError
from strandline.client.command_line import CLIENT_CONFIG_VARIABLE
from strandline.config.cores_section import CORES_MAX

if TYPE_CHECKING:
    from strandline.client.client_config import ClientConfig
    from strandline.client.cluster import Client
    from strandline.model.ids import BrokerId

BOOTSTRAP_VARIABLE = "STRANDLINE_BOOTSTRAP"
DEV_DIRECTORY_VARIABLE = "STRANDLINE_DEV_DIR"
DEFAULT_DEV_DIRECTORY = Path("strandline-dev")
DEFAULT_BOOTSTRAP = "127.0.0.1:9092"

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        "-b",
        metavar="HOST:PORT,...",
        envvar=BOOTSTRAP_VARIABLE,
        help="Brokers to contact first; default: the local cluster of `strandline dev` if "
        f"there is one, else {DEFAULT_BOOTSTRAP}.",
    ),
]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout", min=0.1, max=3600, metavar="SECONDS", help="Give up after this many seconds."
    ),
]
DevDirectory = Annotated[
    Path,
    typer.Option(
        "--dir",
        metavar="DIR",
        envvar=DEV_DIRECTORY_VARIABLE,
        help="The directory of the local cluster.",
    ),
]

PriceFile = Annotated[
    Path | None, typer.Option("--prices", metavar="FILE", help="A price table: JSON or YAML.")
]
PolicyFile = Annotated[
    Path | None,
    typer.Option("--policy", metavar="FILE", help="Placement policy: JSON or YAML."),
]
Unset = Annotated[
    list[str] | None,
    typer.Option("--unset", metavar="KEY", help="A key to reset to its default; may be repeated."),
]

DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the effect; change nothing.")]

Cores = Annotated[
    int | None,
    typer.Option(
        "--cores",
        metavar="N",
        min=1,
        max=CORES_MAX,
        help="A process for each of N brokers, with ids, ports and directories from the one file.",
    ),
]

OptionalId = Annotated[
    int | None, typer.Argument(metavar="[ID]", min=0, help="The broker.", show_default=False)
]
Domain = Annotated[
    str, typer.Option("--domain", metavar="NAME", help="All brokers of an upgrade domain.")
]
Host = Annotated[
    str,
    typer.Option("--host", metavar="NAME", help="All brokers of a machine, by their label host."),
]

DEFAULT_TIMEOUT_S = 30.0


def open_client(bootstrap: str, timeout_s: float) -> "Client":
    """A client of the cluster that the options name; raises OperatorError."""
    from strandline.client.cluster import Client
    from strandline.client.wire.transport import TcpTransport
    from strandline.config.addresses import parse_bootstrap

    config = client_config(bootstrap)
    text = bootstrap or config.bootstrap or find_bootstrap()
    try:
        addresses = parse_bootstrap(text)
    except ValueError as error:
        raise OperatorError(f"--bootstrap {error}") from error
    transport = TcpTransport(config.tls, login=config.login)
    return Client(addresses, timeout_ms=int(timeout_s * 1000), transport=transport)


def named_brokers(
    client: "Client", broker: int | None, *, host: str, domain: str | None = None
) -> "list[BrokerId]":
    """The one broker, or all of the machine, or all of the upgrade domain; `domain`: None if the
    command has no such option. Raises OperatorError."""
    from strandline.client.operations.topology import describe_topology
    from strandline.model.ids import BrokerId
    from strandline.placement.topology.universe import domain_of

    if (broker is not None) + bool(domain) + bool(host) != 1:
        choice = "a broker ID and --host" if domain is None else "a broker ID, --domain and --host"
        raise OperatorError(f"give one of {choice}")
    if broker is not None:
        return [BrokerId(broker)]
    known = describe_topology(client).brokers
    if domain:
        found = [one for one in known if one.labels.upgrade_domain == domain]
        if not found:
            raise OperatorError(f"--domain {domain}: no broker has this upgrade domain")
        return [one.id for one in found]
    found = [one for one in known if one.labels.host == host]
    if not found:
        raise OperatorError(f"--host {host}: no broker has this label host")
    if len({domain_of(one.labels, "host") for one in found}) > 1:
        numbers = ",".join(str(one.id) for one in found)
        raise OperatorError(
            f"--host {host}: brokers {numbers} have it in several regions, zones or racks: name "
            "the brokers one by one"
        )
    return [one.id for one in found]


def client_config(bootstrap: str = "") -> "ClientConfig":
    """What the client's configuration file says, if one is named. Commands for the local cluster
    log in as its administrator, if it is secure. Raises OperatorError."""
    from strandline.client.client_config import ClientConfig, read_client_config

    path = find_client_config(bootstrap)
    return ClientConfig() if path is None else read_client_config(path)


def find_client_config(bootstrap: str = "") -> Path | None:
    """The client's configuration file: the one that is named, or the administrator's of the local
    cluster, if it is secure and `bootstrap` names no other one."""
    path = os.environ.get(CLIENT_CONFIG_VARIABLE)
    return Path(path) if path else _local_login(bootstrap)


def _local_login(bootstrap: str) -> Path | None:
    """The administrator's file of the local cluster, if it is secure and `bootstrap` names it."""
    from strandline.cli.dev.cluster_file import ClusterDirectory
    from strandline.cli.dev.secure_files import ADMIN

    directory = ClusterDirectory(_local_directory())
    if not directory.secure.client(ADMIN).exists():
        return None
    plan = directory.read()
    if plan is None or set(bootstrap.split(",")) - {"", *plan.bootstrap.split(",")}:
        return None
    return directory.secure.client(ADMIN)


def _local_directory() -> Path:
    return Path(os.environ.get(DEV_DIRECTORY_VARIABLE) or DEFAULT_DEV_DIRECTORY)


def find_bootstrap() -> str:
    """Default bootstrap: the local cluster, or the default port."""
    from strandline.cli.dev.cluster_file import ClusterDirectory

    plan = ClusterDirectory(_local_directory()).read()
    return DEFAULT_BOOTSTRAP if plan is None else plan.bootstrap


def find_config(bootstrap: str) -> Path:
    """Default configuration file: of a broker of the local cluster, if `bootstrap` is empty or of
    that cluster; raises OperatorError."""
    from strandline.cli.dev.cluster_file import ClusterDirectory

    directory = ClusterDirectory(_local_directory())
    plan = directory.read()
    if plan is None:
        raise OperatorError(
            f"--config is missing, and {directory.path} has no local cluster: name the "
            "configuration file of a broker"
        )
    others = set(bootstrap.split(",")) - {"", *plan.bootstrap.split(",")}
    if others:
        raise OperatorError(
            f"--config is missing: name the configuration file of a broker of {min(others)}, which "
            f"is not of the local cluster in {directory.path}"
        )
    return directory.files(plan.brokers[0]).config


def parse_pairs(texts: list[str] | None, *, option: str) -> tuple[tuple[str, str], ...]:
    """Read repeated `key=value` options; raises OperatorError."""
    pairs = []
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise OperatorError(f"{option} {text!r}: expected key=value")
        pairs.append((name, value))
    return tuple(pairs)


def parse_changes(config: list[str] | None, unset: list[str] | None) -> dict[str, str | None]:
    """Read `--config` and `--unset`: {key: its value, or None to reset it}; raises
    OperatorError."""
    changes: dict[str, str | None] = dict(parse_pairs(config, option="--config"))
    return changes | dict.fromkeys(unset or ())
