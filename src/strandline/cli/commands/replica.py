"""`strandline replica`: how far each replica is.

Why:    the fields of Confluent's kafka-replica-status: its IsIsrEligible is `is_isr_eligible` in
        JSON, and ISR-ELIGIBLE in the table.
Source: reference observers 4.4; docs/reference/cli.md."""

from enum import Enum
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperCommand

from strandline.base.json_value import Json
from strandline.cli.options import DEFAULT_TIMEOUT_S, AsJson, Bootstrap, Timeout, open_client
from strandline.cli.output import Table, print_line, print_table, program, show

if TYPE_CHECKING:
    from typer._click.core import Context

    from strandline.client.operations.replica_status import PartitionStatus
    from strandline.protocol.messages.describe_replica_status import ReplicaStatus

app = typer.Typer(help="Show how far each replica is.", no_args_is_help=True)


NUMBER_DIGITS_MAX = 6


class Shown(Enum):
    """Whether replicas of a kind are shown alone, or not at all."""

    ONLY = "only"
    EXCLUDE = "exclude"


KINDS = ("--leaders", "--observers")
"""The options that mean "only" where nothing follows them, as those of kafka-replica-status."""


class _Command(TyperCommand):
    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        return super().parse_args(ctx, _completed(args))


def _completed(words: list[str]) -> list[str]:
    """The arguments, completed after an option of `KINDS` without a value."""
    found: list[str] = []
    for word, following in zip_longest(words, words[1:], fillvalue="-"):
        found.append(word)
        if word in KINDS and following.startswith("-"):
            found.append(Shown.ONLY.value)
    return found


@app.callback()
def group() -> None:
    """Show how far each replica is."""


@app.command(cls=_Command)
def status(
    topics: Annotated[
        str, typer.Option("--topics", metavar="NAME,...", help="Topics; default: all.")
    ] = "",
    partitions: Annotated[
        str,
        typer.Option("--partitions", metavar="N,N-M...", help="Partition numbers; default: all."),
    ] = "",
    leaders: Annotated[
        Shown | None,
        typer.Option(
            "--leaders", metavar="[only|exclude]", help="Show leaders only, or leave them out."
        ),
    ] = None,
    observers: Annotated[
        Shown | None,
        typer.Option(
            "--observers", metavar="[only|exclude]", help="Show observers only, or leave them out."
        ),
    ] = None,
    exclude_internal: Annotated[
        bool, typer.Option("--exclude-internal", help="Leave internal topics out.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Also show the counts of each partition.")
    ] = False,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Show each replica as its leader sees it: in sync or not, how far behind, and for how long;
    and where its log starts, as its broker reports."""
    from strandline.base.errors import OperatorError
    from strandline.client.operations.replica_status import (
        ask_log_starts,
        replica_status,
        status_json,
    )

    numbers = _numbers(partitions)
    with open_client(bootstrap, timeout) as client:
        found = replica_status(
            client, [one for one in topics.split(",") if one], partitions=numbers
        )
        if numbers and not found:
            raise OperatorError(
                f"--partitions {partitions[:80]}: no topic has a partition with these numbers"
            )
        found = [one for one in found if not (exclude_internal and one.is_internal)]
        kept = {
            (one.topic, one.partition): [
                each
                for each in one.replicas
                if _is_kept(leaders, is_one=each.is_leader)
                and _is_kept(observers, is_one=each.is_observer)
            ]
            for one in found
        }
        ask_log_starts(client, kept)
    told: Json = {"partitions": [status_json(one, kept[one.topic, one.partition]) for one in found]}
    show(told, as_json=as_json, people=lambda: _print(found, kept, verbose=verbose))


def _is_kept(shown: Shown | None, *, is_one: bool) -> bool:
    return shown is None or is_one == (shown is Shown.ONLY)


def _numbers(text: str) -> frozenset[int]:
    from strandline.base.errors import OperatorError

    found: set[int] = set()
    for part in text.split(",") if text else ():
        first, dash, last = part.partition("-")
        last = last if dash else first
        are_numbers = first.isdecimal() and last.isdecimal() and len(last) <= NUMBER_DIGITS_MAX
        if not are_numbers or int(first) > int(last):
            raise OperatorError(f"--partitions {text[:80]}: expected numbers, as in 0 or 0,2-5")
        found |= set(range(int(first), int(last) + 1))
    return frozenset(found)


HEADS = (
    "TOPIC", "PARTITION", "REPLICA", "LEADER", "OBSERVER", "ISR-ELIGIBLE", "IN-ISR", "CAUGHT-UP",
    "LAST-CAUGHT-UP-LAG-MS", "LAST-FETCH-LAG-MS", "LOG-START", "LOG-END", "LAG",
)  # fmt: skip
NUMBERS = frozenset(("PARTITION", "REPLICA", *HEADS[-5:]))


def _print(
    found: "list[PartitionStatus]",
    kept: "dict[tuple[str, int], list[ReplicaStatus]]",
    *,
    verbose: bool,
) -> None:
    from strandline.client.operations.replica_status import lag_of

    rows: list[tuple[str | int, ...]] = []
    for one in found:
        for each in kept[one.topic, one.partition]:
            flags = (
                each.is_leader, each.is_observer, each.is_isr_eligible, each.is_in_isr,
                each.is_caught_up,
            )  # fmt: skip
            numbers = (
                each.last_caught_up_lag_ms, each.last_fetch_lag_ms, each.log_start_offset,
                each.log_end_offset, lag_of(one, each),
            )  # fmt: skip
            rows.append(
                (
                    one.topic,
                    one.partition,
                    each.broker_id,
                    *("yes" if flag else "no" for flag in flags),
                    *("?" if value is None or value < 0 else value for value in numbers),
                )
            )
    if rows:
        print_table(Table(heads=HEADS, rows=rows, right=NUMBERS))
    for one in found:
        if one.answer is None:
            why = f"its leader, broker {one.leader}, does not answer"
            if one.leader < 0:
                which = f"{one.topic} {one.partition}"
                why = (
                    f"it has no leader; to see what helps: {program()} partition survivors {which}"
                )
            print_line(f"{one.topic}-{one.partition}: {why}")
    if verbose and any(one.answer is not None for one in found):
        _print_counts([one for one in found if one.answer is not None])
    if not rows and all(one.answer is not None for one in found):
        print_line("no such replica")


def _print_counts(found: "list[PartitionStatus]") -> None:
    names = tuple(found[0].counts)
    print_line("")
    print_table(
        Table(
            heads=("TOPIC", "PARTITION", *names),
            rows=[(one.topic, one.partition, *one.counts.values()) for one in found],
            right=frozenset(("PARTITION", *names)),
        )
    )
