"""Labels from several sources: read, checked and merged, each value with its source.

Why:    a broker gets its labels from its file, its environment, or a command that asks the cloud; a
        misspelt or contradictory one places data where no user wanted it.
How:    The sources are ordered, the strongest first; the first that names a label wins. If none
        gives an upgrade domain, the formula does, if there is one. A label changed while the broker
        ran stays, until its sources change their value.
Owns:   nothing.
Source: decisions 0008 and 0015."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from strandline.base.errors import OperatorError
from strandline.config.addresses import check_label
from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId
from strandline.placement.topology.naming import brokers_named
from strandline.placement.topology.ordinal import Formula

FREE_LABELS_MAX = 32
LABEL_TEXT_CHARACTERS_MAX = 16_384
BROKER_LABEL = "broker"
"""Stands for the broker itself in a policy; no label may be called so."""
_NAME = re.compile(r"[a-z]([a-z0-9_-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class LabelSource:
    """Labels by name, and their source: "file", "environment", "command"."""

    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MergedLabels:
    """The labels of a broker, and {label: the source that gave it}."""

    labels: Labels
    origin: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MissingLabel:
    """A broker without a label that a policy needs."""

    broker: BrokerId
    label: str


def tell_missing(missing: Iterable[MissingLabel]) -> list[str]:
    """A sentence for each label, with all brokers that lack it."""
    lacking: dict[str, list[BrokerId]] = {}
    for one in missing:
        lacking.setdefault(one.label, []).append(one.broker)
    return [
        f"{brokers_named(brokers)} {'has' if len(brokers) == 1 else 'have'} no label {label!r}, "
        f"which the policy needs: give {'it' if len(brokers) == 1 else 'them'} one, or leave "
        f"{label!r} out of the policy"
        for label, brokers in lacking.items()
    ]


def parse_labels(text: str, *, source: str) -> LabelSource:
    """Read what a command printed: one `name=value` a line, empty lines and # comments apart.

    Raises OperatorError that names the line."""
    if len(text) > LABEL_TEXT_CHARACTERS_MAX:
        raise OperatorError(
            f"{source}: more than {LABEL_TEXT_CHARACTERS_MAX} characters of labels: "
            "print lines like region=eu-west-1 and nothing else"
        )
    labels: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals:
            raise OperatorError(
                f"{source}, line {number}: {line[:80]!r} is no label: write region=eu-west-1"
            )
        if name in labels:
            raise OperatorError(f"{source}, line {number}: gives {name} twice: keep one of them")
        labels[name] = value
    return LabelSource(source, labels)


def merge_labels(
    sources: Sequence[LabelSource], *, formula: Formula | None = None, host: str = ""
) -> MergedLabels:
    """Merge sources, the strongest first. An empty value stands for "not said".

    `host` is the name that the formula reads where no source gives the label `host`. Raises
    OperatorError for a name or a value that cannot be."""
    values: dict[str, str] = {}
    origin: dict[str, str] = {}
    for source in sources:
        for name, value in source.labels.items():
            _check(name, value, source.name)
            if value and name not in values:
                values[name] = value
                origin[name] = source.name
    if formula is not None and "upgrade_domain" not in values:
        values["upgrade_domain"] = formula.upgrade_domain(values.get("host") or host)
        origin["upgrade_domain"] = "formula"
    return MergedLabels(_limited(Labels.of(values)), origin)


def carried_over(kept: Labels, *, said: Labels, says: Labels) -> Labels:
    """The labels of a broker that had `kept` when its configuration said `said`, now that it says
    `says`: a label of which it says the same as then is as it was kept."""
    present = says.as_dict()
    for name in said.as_dict() | kept.as_dict():
        if said.get(name) == says.get(name):
            present[name] = kept.get(name)
    return Labels.of(present)


def changed_labels(labels: Labels, changes: Mapping[str, str | None]) -> Labels:
    """The labels with these changes; None takes a label off. Raises OperatorError."""
    for name, value in changes.items():
        _check(name, value or "", "labels")
        if value == "":
            raise OperatorError(f"label {name} is empty: write {name}- to take it off")
    return _limited(Labels.of(labels.as_dict() | {name: v or "" for name, v in changes.items()}))


def check_label_name(name: str) -> str | None:
    """Why a label cannot have this name; None when it can."""
    if name == BROKER_LABEL:
        return f"may not be called {BROKER_LABEL!r}, which stands for the broker itself"
    if not _NAME.fullmatch(name):
        return (
            "must be 1 to 63 of a-z 0-9 _ - that begin with a letter and end with a letter or "
            f"digit, not {name[:80]!r}"
        )
    return None


def missing_labels(
    wanted: Iterable[str], brokers: Iterable[tuple[BrokerId, Labels]]
) -> list[MissingLabel]:
    """Which broker lacks which of the wanted labels, by broker id, then in the order of
    `wanted`."""
    names = [name for name in dict.fromkeys(wanted) if name != BROKER_LABEL]
    return [
        MissingLabel(broker, name)
        for broker, labels in sorted(brokers, key=lambda pair: pair[0])
        for name in names
        if not labels.get(name)
    ]


def _limited(labels: Labels) -> Labels:
    if len(labels.free) > FREE_LABELS_MAX:
        raise OperatorError(
            f"{len(labels.free)} labels of your own: give at most {FREE_LABELS_MAX}"
        )
    return labels


def _check(name: str, value: str, source: str) -> None:
    reason = check_label_name(name)
    if reason is not None:
        raise OperatorError(f"{source}: a label {reason}")
    reason = check_label(value)
    if reason is not None:
        raise OperatorError(f"{source}: label {name} {reason}")
