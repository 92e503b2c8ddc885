"""A broker's labels when it starts: from its configuration, a formula, and a command that prints
them.

Why:    where a broker is may be known to the machine it runs on only: the cloud's metadata, a
        Kubernetes node, an inventory.
How:    file and environment win over what the command prints. The command runs once, without a
        shell, before the broker joins: a broker without its labels must not be given replicas.
Source: decision 0008."""

import subprocess
from collections.abc import Sequence

from strandline.base.errors import OperatorError
from strandline.config.broker import BrokerConfig
from strandline.model.cluster import NAMED_LABELS, Labels
from strandline.placement.topology.labels import LabelSource, merge_labels, parse_labels
from strandline.placement.topology.ordinal import Formula, parse_formula

COMMAND_TIMEOUT_S = 30
_STDERR_CHARACTERS_MAX = 200


def find_labels(config: BrokerConfig, *, hostname: str) -> Labels:
    """The labels of the broker; runs the command, if one is configured.

    `hostname`: what the formula reads where no label `host` is given. Raises OperatorError."""
    section = config.labels
    sources = configured_labels(config)
    if section.command:
        sources.append(_ask(section.command))
    return merge_labels(sources, formula=_formula(config), host=hostname).labels


def label_mistake(config: BrokerConfig) -> str | None:
    """What is wrong with what is configured, without running the command; None for nothing."""
    try:
        merge_labels(configured_labels(config))
        _formula(config)
    except OperatorError as error:
        return str(error)
    return None


def configured_labels(config: BrokerConfig) -> list[LabelSource]:
    """What the file and the environment say. Raises OperatorError for a line that is no label."""
    section = config.labels
    named = {name: getattr(section, name) for name in NAMED_LABELS}
    other = parse_labels("\n".join(section.other), source="[broker.labels] other")
    return [LabelSource("[broker.labels]", named), other]


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
            f"{what}: says nothing for {COMMAND_TIMEOUT_S} s: make it print lines like "
            "region=eu-west-1, and end"
        ) from None
    except (OSError, ValueError) as error:
        raise OperatorError(f"{what}: cannot be run: {error}") from None
    if done.returncode:
        said = " ".join(done.stderr.split())[:_STDERR_CHARACTERS_MAX]
        raise OperatorError(f"{what}: ended with {done.returncode}: {said or 'without a word'}")
    return parse_labels(done.stdout, source=what)
