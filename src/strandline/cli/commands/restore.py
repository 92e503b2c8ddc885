"""`strandline restore`: a lost cluster, out of its buckets.

Source: decision 0063; docs/operating/restore.md."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.errors import OperatorError
from strandline.cli.options import (
    DEFAULT_TIMEOUT_S,
    AsJson,
    Bootstrap,
    DryRun,
    Timeout,
    Unset,
    open_client,
    parse_changes,
)
from strandline.cli.output import Table, counted, print_line, print_table, show

if TYPE_CHECKING:
    from collections.abc import Mapping

    from strandline.client.restore.plan import RestorePlan

From = Annotated[
    list[str],
    typer.Option(
        "--from",
        metavar="URL",
        help="A bucket of the lost cluster, with its prefix, as in [tiered] buckets; may be "
        "repeated.",
    ),
]
AsOf = Annotated[
    str,
    typer.Option(
        "--as-of",
        metavar="TIME",
        help="Use nothing that was written later: 2026-11-29T22:00:00Z, or milliseconds since "
        "1970. Default: the newest.",
    ),
]
TopicPatterns = Annotated[
    list[str] | None,
    typer.Option("--topics", metavar="PATTERN", help="Topics, with * and ?; may be repeated."),
]
Config = Annotated[
    list[str] | None,
    typer.Option(
        "--config",
        "-c",
        metavar="KEY=VALUE",
        help="A topic key that every restored topic gets in place of its own; may be repeated.",
    ),
]
Credentials = Annotated[
    Path | None,
    typer.Option(
        "--credentials",
        metavar="FILE",
        help="A TOML file with credentials, in a table of the name restore; default: the "
        "environment.",
    ),
]
Partial = Annotated[
    bool,
    typer.Option(
        "--partial",
        help="Go on although objects are deleted or lost: of each partition the longest range "
        "without a gap comes back.",
    ),
]
NAMED_MAX = 3

To = Annotated[
    Path | None,
    typer.Option(
        "--to",
        metavar="FILE",
        help="A broker's file of this cluster: its [tiered] section says which buckets get the "
        "copies, and where their credentials are.",
    ),
]
Records = Annotated[
    bool,
    typer.Option(
        "--records", help="Produce every record again: for a cluster without tiered storage."
    ),
]


def restore(
    sources: From,
    as_of: AsOf = "",
    topics: TopicPatterns = None,
    credentials: Credentials = None,
    config: Config = None,
    unset: Unset = None,
    to: To = None,
    records: Records = False,
    dry_run: DryRun = False,
    partial: Partial = False,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Bring the topics of a lost cluster back in this one, out of its buckets: records under their
    offsets, configurations, committed offsets. With --to their objects are copied into this
    cluster's buckets; with --records they are produced again. Lists exactly what is missing. Run
    again, it goes on. With --dry-run: only the list; no cluster is needed."""
    import asyncio

    from strandline.cli.text.restore import open_sources, open_targets, plan_json, ways
    from strandline.client.restore.copying import carry_out
    from strandline.client.restore.objects import carry_out_objects
    from strandline.client.restore.offsets import require_other_cluster
    from strandline.client.restore.plan import plan_restore
    from strandline.client.restore.quotas import restore_quotas
    from strandline.client.restore.rules import restore_rules
    from strandline.tiered.objects.store import StoreError

    as_of_ms = parse_time(as_of) if as_of else None
    changes = parse_changes(config, unset) if config or unset else {}
    if ((to is not None) and records) or not (to or records or dry_run):
        raise OperatorError(
            "say how records come back: with --to FILE, a broker's file of this cluster, their "
            "objects are copied into its buckets; with --records they are produced again, for a "
            "cluster without tiered storage"
        )
    targets = None if to is None else open_targets(to)
    stores = open_sources(sources, credentials)
    try:
        with asyncio.Runner() as runner:
            plan = runner.run(plan_restore(stores, as_of_ms=as_of_ms, topics=topics or ()))
            way = ways(plan, stores, targets, changes) if to or records else {}
            told = plan_json(plan, way)
            show(told, as_json=as_json, people=lambda: _print(plan, way))
            if not dry_run:
                if plan.lacking and not partial:
                    raise _lacking(plan.lacking)
                with open_client(bootstrap, timeout) as client:
                    require_other_cluster(client, plan)
                    say = (lambda _: None) if as_json else print_line
                    restore_rules(client, plan, say=say)
                    if targets is None:
                        carry_out(client, runner, stores, plan, changes=changes, say=say)
                    else:
                        carry_out_objects(
                            client, runner, stores, targets, plan, changes=changes, say=say
                        )
                    restore_quotas(client, plan, say=say)
    except StoreError as error:
        raise OperatorError(f"the buckets cannot be read or written: {error}") from error


def _lacking(partitions: list[str]) -> OperatorError:
    more = len(partitions) - NAMED_MAX
    named = ", ".join(partitions[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
    count = counted(len(partitions), "partition")
    return OperatorError(
        f"the buckets lack objects of {count}, see MISSING: {named}; give the other buckets with "
        "--from, or another --as-of; with --partial, what is left comes back"
    )


def parse_time(text: str) -> int:
    """Milliseconds since 1970. Raises OperatorError."""
    if text.isascii() and text.isdecimal():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise OperatorError(
            f"--as-of {text} is no time: write it as 2026-11-29T22:00:00Z, or in ms since 1970"
        ) from None
    if moment.tzinfo is None:
        raise OperatorError(f"--as-of {text} has no time zone: add Z, or +01:00")
    return round(moment.timestamp() * 1000)


def _print(plan: "RestorePlan", ways: "Mapping[tuple[str, int], str]") -> None:
    taken = datetime.fromtimestamp(plan.taken.written_ms / 1000, UTC)
    print_line(f"cluster {plan.cluster_id}, as its controller was at {taken:%Y-%m-%dT%H:%M:%SZ}")
    print_table(
        Table(
            heads=("PARTITION", "FROM", "TO", "BYTES", "MISSING", "BUCKET", *["WAY"] * bool(ways)),
            rows=[
                (
                    f"{topic.name}-{one.index}",
                    one.start,
                    one.end,
                    one.size_bytes,
                    one.missing,
                    one.bucket or "-",
                    *[ways.get((topic.name, one.index), "-")] * bool(ways),
                )
                for topic in plan.topics
                for one in topic.partitions
            ],
            right=frozenset(("FROM", "TO", "BYTES")),
        )
    )
    size = sum(one.size_bytes for topic in plan.topics for one in topic.partitions)
    print_line(f"{size} bytes in all")
    cut = [one for one in plan.offsets if one.restored != one.committed]
    groups = {one.group for one in plan.offsets}
    print_line(f"{counted(len(groups), 'group')}, {counted(len(plan.offsets), 'committed offset')}")
    for one in cut:
        print_line(
            f"group {one.group}: {one.topic}-{one.partition} goes back from {one.committed} to "
            f"{one.restored}, where its log ends"
        )
    if plan.rules or plan.users:
        print_line(f"{counted(len(plan.rules), 'rule')} of access")
        print_line(f"users, which need new passwords: {', '.join(plan.users) or 'none'}")
    if plan.quotas:
        count = sum(len(values) for values in plan.quotas.values())
        print_line(f"{counted(count, 'quota')} of clients")
    for note in plan.notes:
        print_line(note)
