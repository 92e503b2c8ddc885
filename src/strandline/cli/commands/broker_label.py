"""`strandline broker label`: shows labels of brokers, and changes them at run time.

Source: docs/reference/cli.md; docs/decisions/0015-labels-at-run-time.md."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.json_value import Json
from strandline.cli.options import DEFAULT_TIMEOUT_S, AsJson, Bootstrap, Timeout, open_client
from strandline.cli.output import Table, ids, print_line, print_table, show

if TYPE_CHECKING:
    from strandline.client.operations.labels import Altered
    from strandline.client.operations.topology import PlacedBroker
    from strandline.model.ids import BrokerId

BY_FORCE = "to change the labels all the same, add --force"

Brokers = Annotated[
    str, typer.Argument(metavar="ID,...", help="The brokers; without CHANGE, default: all.")
]
Changes = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="CHANGE",
        help="LABEL=VALUE sets a label, LABEL- removes it.",
        show_default=False,
    ),
]


def label(
    brokers: Brokers = "",
    changes: Changes = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the effect; change nothing.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Change labels even if policies can then not be met."),
    ] = False,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Show labels of brokers, or change them at run time. Replicas that then break their policy
    move. Refused if a policy could not be met, or would lack a label that it needs."""
    from strandline.base.errors import ApiError, OperatorError
    from strandline.client.operations.labels import alter_labels
    from strandline.client.operations.topology import describe_topology
    from strandline.protocol.errors import Error

    wanted, named = _changes(changes or []), _ids(brokers)
    if (dry_run or force) and not wanted:
        raise OperatorError("no labels to change: give LABEL=VALUE, or LABEL- to remove one")
    with open_client(bootstrap, timeout) as client:
        if wanted:
            if not force:
                _check_names(wanted, describe_topology(client).brokers)
            try:
                altered = alter_labels(
                    client, named, wanted, is_forced=force, validate_only=dry_run
                )
            except ApiError as error:
                if error.code == Error.POLICY_VIOLATION:
                    raise OperatorError(str(error), [*error.details, BY_FORCE]) from None
                raise
            told = _describe(altered, is_done=not dry_run)
            show(told, as_json=as_json, people=lambda: _tell(altered, is_done=not dry_run))
            return
        known = describe_topology(client).brokers
    missing = set(named) - {one.id for one in known}
    if missing:
        raise OperatorError(f"no broker {min(missing)} in this cluster")
    shown = [one for one in known if one.id in named or not named]
    show([_describe_broker(one) for one in shown], as_json=as_json, people=lambda: _print(shown))


def _ids(text: str) -> "list[BrokerId]":
    from strandline.base.errors import OperatorError
    from strandline.model.ids import BrokerId

    try:
        return [BrokerId(int(part)) for part in text.split(",")] if text else []
    except ValueError:
        raise OperatorError(f"{text[:80]!r} is not a list of broker IDs: write 4 or 4,5") from None


def _changes(texts: Sequence[str]) -> dict[str, str | None]:
    """{label: its new value, None to take it off}; raises OperatorError."""
    from strandline.base.errors import OperatorError

    found: dict[str, str | None] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals and not text.endswith("-"):
            raise OperatorError(
                f"{text[:80]!r} is not a label change: write rack=r12, or rack- to remove the label"
            )
        name = name if equals else text.removesuffix("-")
        if name in found:
            raise OperatorError(f"label {name} is given twice: keep one")
        found[name] = value if equals else None
    return found


def _check_names(wanted: Mapping[str, str | None], known: "Sequence[PlacedBroker]") -> None:
    """Refuse to set a label that no broker has and that is spelt almost as one that is known."""
    from difflib import get_close_matches

    from strandline.base.errors import OperatorError
    from strandline.model.cluster import NAMED_LABELS

    names = {*NAMED_LABELS, *(name for one in known for name in one.labels.as_dict())}
    for name, value in wanted.items():
        close = get_close_matches(name, sorted(names), n=1, cutoff=0.7)
        if value is not None and name not in names and close:
            raise OperatorError(
                f"no broker has a label {name[:80]!r}: did you mean {close[0]}? "
                f"To set it all the same, add --force"
            )


# ---- changed -------------------------------------------------------------------------------------


def _describe(altered: "Altered", *, is_done: bool) -> Json:
    return {
        "changed": is_done,
        "brokers": [
            {"id": broker, "labels": {**labels}} for broker, labels in altered.labels.items()
        ],
        "moves": [
            {"topic": one.topic, "partitions": one.count, "examples": list(one.partitions)}
            for one in altered.moves
        ],
        "objections": list(altered.objections),
    }


def _tell(altered: "Altered", *, is_done: bool) -> None:
    for broker, labels in altered.labels.items():
        text = _text(labels) or "no labels"
        print_line(f"broker {broker} {'has' if is_done else 'would have'} {text}")
    for objection in altered.objections:
        first, *others = objection.splitlines()
        print_line(f"objection: {first}")
        for line in others:
            print_line(f"  {line}")
    for one in altered.moves:
        some = ids(one.partitions) + (",..." if one.count > len(one.partitions) else "")
        noun, verb = ("partition", "is") if one.count == 1 else ("partitions", "are")
        verb = verb if is_done else "would be"
        print_line(f"topic {one.topic}: {one.count} {noun} {verb} against the policy: {some}")
    if altered.moves:
        see = "; see `strandline cluster balance`" if is_done else ""
        where = " where that improves anything" if altered.objections else ""
        print_line(f"replicas {'move' if is_done else 'would move'} automatically{where}{see}")
    if not is_done:
        print_line("nothing changed")


# ---- shown ---------------------------------------------------------------------------------------


def _set_at_run_time(broker: "PlacedBroker") -> list[tuple[str, str, str]]:
    """The labels that are not as the configuration says: (label, what it is, what that says)."""
    if broker.configured is None:
        return []
    said, present = broker.configured.as_dict(), broker.labels.as_dict()
    return [
        (name, present.get(name, ""), said.get(name, ""))
        for name in present | said
        if present.get(name) != said.get(name)
    ]


def _describe_broker(broker: "PlacedBroker") -> Json:
    said: Json = None if broker.configured is None else {**broker.configured.as_dict()}
    return {"id": broker.id, "labels": {**broker.labels.as_dict()}, "configured": said}


def _print(brokers: "Sequence[PlacedBroker]") -> None:
    rows = [(one.id, _text(one.labels.as_dict()) or "-", _changed(one) or "-") for one in brokers]
    heads = ("BROKER", "LABELS", "CHANGED AT RUN TIME")
    print_table(Table(heads=heads, rows=rows, right=frozenset(("BROKER",))))


def _changed(broker: "PlacedBroker") -> str:
    return ", ".join(
        f"{name}={value} (configured: {said or 'none'})" if value else f"no {name} ({said})"
        for name, value, said in _set_at_run_time(broker)
    )


def _text(labels: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in labels.items())
