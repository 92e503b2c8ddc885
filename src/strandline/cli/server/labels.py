"""Finds a starting broker's labels: in its configuration, by a formula, and from a command.

Why:    a broker's place may be known only on its machine: cloud metadata, a Kubernetes node, an
        inventory.
How:    file and environment override the command's output. The command runs once, without a shell,
        before the broker joins: a broker without its labels must not get replicas.
            The brokers of a machine (`--cores`) have its name as the label host, if no source gives
        one, and the host as their upgrade domain: they go down together.
Source: decision 0008."""

import subprocess
from collections.abc import Iterable, Mapping, Sequence

from strandline.base.errors import OperatorError
from strandline.config.addresses import check_label
from strandline.config.broker import BrokerConfig
from strandline.config.load import variable_name
from strandline.model.cluster import NAMED_LABELS
from strandline.placement.topology.labels import (
    LabelSource,
    MergedLabels,
    merge_labels,
    parse_labels,
)
from strandline.placement.topology.ordinal import Formula, parse_formula

SECTION = "broker.labels"
COMMAND_TIMEOUT_S = 30
_STDERR_CHARACTERS_MAX = 200


def find_labels(
    config: BrokerConfig, *, hostname: str, environment: Mapping[str, str]
) -> MergedLabels:
    """The labels of the broker, each with its origin. Runs the command, if one is configured.

    `hostname`: the formula's input if no label `host` is given. Raises OperatorError."""
    section = config.labels
    sources = configured_labels(config, environment)
    if section.command:
        sources.append(_ask(section.command))
    return merge_labels(sources, formula=_formula(config), host=hostname)


def find_machine_labels(
    config: BrokerConfig, *, hostname: str, environment: Mapping[str, str]
) -> MergedLabels:
    """As `find_labels`, for all brokers of a machine: host and upgrade domain are always given.
    Raises OperatorError."""
    found = find_labels(config, hostname=hostname, environment=environment)
    host = found.labels.host
    if not host:
        reason = check_label(hostname) if hostname else "is empty"
        if hostname.partition(".")[0] == "localhost":
            reason = "every machine may have it"
        if reason is not None:
            raise OperatorError(
                f"the machine's name {hostname!r} cannot be the label host: {reason}: give "
                f"[{SECTION}] host"
            )
        host = hostname
    named = LabelSource("the machine's name", {"host": host})
    domain = LabelSource("the host", {"upgrade_domain": host})
    known = [LabelSource(found.origin[name], {name: value}) for name, value in _items(found)]
    return merge_labels([*known, named, domain])


def _items(found: MergedLabels) -> Iterable[tuple[str, str]]:
    return found.labels.as_dict().items()


def label_mistake(config: BrokerConfig, environment: Mapping[str, str]) -> str | None:
    """The mistake in the configured labels, and its place, without running the command; None if
    there is none."""
    try:
        merge_labels(configured_labels(config, environment))
    except OperatorError as error:
        return str(error)
    try:
        _formula(config)
    except OperatorError as error:
        return f"{_source('upgrade_domain_formula', environment)}: {error}"
    return None


def configured_labels(config: BrokerConfig, environment: Mapping[str, str]) -> list[LabelSource]:
    """The labels of the environment and of the file; the environment overrides a key. Raises
    OperatorError for a line that is no label."""
    section = config.labels
    found = [
        LabelSource(_source(name, environment), {name: getattr(section, name)})
        for name in NAMED_LABELS
    ]
    other = _source("other", environment)
    return [*found, parse_labels("\n".join(section.other), source=other)]


def tell_origin(found: MergedLabels) -> list[str]:
    """Each label with its origin: "region=east, by [broker.labels] region"."""
    return [f"{name}={value}, by {found.origin[name]}" for name, value in _items(found)]


def _source(key: str, environment: Mapping[str, str]) -> str:
    """Where a key of the section is set: its environment variable, else the file."""
    variable = variable_name(SECTION, key)
    return f"environment {variable}" if variable in environment else f"[{SECTION}] {key}"


def _formula(config: BrokerConfig) -> Formula | None:
    text = config.labels.upgrade_domain_formula
    return parse_formula(text) if text else None


def _ask(command: Sequence[str]) -> LabelSource:
    what = f"[broker.labels] command {command[0]}"
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise OperatorError(
            f"{what}: no result after {COMMAND_TIMEOUT_S} s: it must print lines like "
            "region=eu-west-1, and exit"
        ) from None
    except (OSError, ValueError) as error:
        raise OperatorError(f"{what}: cannot run: {error}") from None
    if done.returncode:
        said = " ".join(done.stderr.split())[:_STDERR_CHARACTERS_MAX]
        raise OperatorError(f"{what}: exit code {done.returncode}: {said or 'no output'}")
    return parse_labels(done.stdout, source=what)
