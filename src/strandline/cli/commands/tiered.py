"""`strandline tiered`: what buckets hold, whether it is sound, and what is too much.

Source: decision 0058."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from strandline.base.errors import OperatorError
from strandline.cli.exit_codes import UNHEALTHY
from strandline.cli.options import (
    DEFAULT_TIMEOUT_S,
    AsJson,
    Bootstrap,
    Timeout,
    find_config,
    open_client,
)
from strandline.cli.output import Table, counted, print_line, print_table, show

if TYPE_CHECKING:
    from strandline.cli.text.tiered import Verified
    from strandline.client.operations.tier import TierStatus
    from strandline.tiered.collection.collect import Collected

DEFAULT_GRACE_DAYS = 7.0

app = typer.Typer(
    help="Show, check and replace the buckets of tiered storage.", no_args_is_help=True
)

Topics = Annotated[
    list[str] | None, typer.Argument(metavar="TOPIC...", help="Topics; default: all.")
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The configuration file of a broker: its [tiered] section says where the buckets "
        "are, and where their credentials; default: that of the local cluster of `strandline dev`.",
    ),
]
BucketName = Annotated[
    str, typer.Option("--bucket", metavar="REGION", help="One bucket; default: all.")
]


@app.command()
def status(
    topics: Topics = None,
    by_bucket: Annotated[
        bool,
        typer.Option(
            "--by-bucket",
            help="One line for each bucket, with what the brokers have asked of it since they "
            "started.",
        ),
    ] = False,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Show what each bucket holds of each partition, and what waits for its upload. Exit code 10 if
    some of it is not known: a partition has no leader, or a broker does not answer."""
    from strandline.cli.text.tiered import status_json
    from strandline.client.operations.tier import tier_status

    with open_client(bootstrap, timeout) as client:
        found = tier_status(client, topics or ())
    people = _print_buckets if by_bucket else _print_status
    show(status_json(found), as_json=as_json, people=lambda: people(found))
    if found.missing:
        raise typer.Exit(UNHEALTHY)


@app.command()
def verify(
    topics: Topics = None,
    config: ConfigFile = None,
    bucket: BucketName = "",
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="Have the leaders put missing and damaged objects again, from their logs or from "
            "other buckets.",
        ),
    ] = False,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Read every object of the buckets, and compare all checksums with the partitions' logs. Exit
    code 10 if an object is missing, damaged or unreadable, and was not put again."""
    import asyncio

    from strandline.cli.text.tiered import open_buckets, verified_json, verify_buckets

    buckets = open_buckets(config or find_config(bootstrap), bucket)
    with open_client(bootstrap, timeout) as client:
        found = asyncio.run(verify_buckets(client, buckets, topics or (), repairs=repair))
    show(verified_json(found), as_json=as_json, people=lambda: _print_verified(found))
    if not found.is_sound:
        raise typer.Exit(UNHEALTHY)


@app.command()
def gc(
    config: ConfigFile = None,
    bucket: BucketName = "",
    grace_days: Annotated[
        float,
        typer.Option(
            "--grace-days",
            metavar="DAYS",
            min=1 / 24,
            help="Objects that are younger stay in any case.",
        ),
    ] = DEFAULT_GRACE_DAYS,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete them. Without it nothing changes.")
    ] = False,
    deleted_topic: Annotated[
        list[UUID] | None,
        typer.Option(
            "--deleted-topic",
            metavar="ID",
            help="Take this topic for deleted if the cluster knows neither it nor its deletion (it "
            "remembers the last 10,000). May be repeated.",
        ),
    ] = None,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Find objects in the buckets that no partition's log knows, such as those of uploads that died
    with their broker. Exit code 10 if a partition could not be judged."""
    import asyncio

    from strandline.cli.text.tiered import collect_buckets, collected_json, open_buckets

    buckets = open_buckets(config or find_config(bootstrap), bucket)
    now_ms = int(time.time() * 1000)
    grace_ms = int(grace_days * 86_400_000)
    with open_client(bootstrap, timeout) as client:
        found = asyncio.run(
            collect_buckets(
                client,
                buckets,
                now_ms=now_ms,
                grace_ms=grace_ms,
                deletes=delete,
                deleted=deleted_topic or (),
            )
        )
    show(
        collected_json(found),
        as_json=as_json,
        people=lambda: _print_collected(found, deletes=delete),
    )
    if any(one.uncertain for one in found.values()):
        raise typer.Exit(UNHEALTHY)


@app.command()
def replace(
    bucket: Annotated[
        str, typer.Argument(metavar="BUCKET", help="Its name in [tiered] buckets: a region.")
    ],
    config: ConfigFile = None,
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss", help="Give up records that only the bucket that it replaces has."
        ),
    ] = False,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Use another bucket under this name: the one at the address in the brokers' files, instead of
    the one that the cluster has used. Everything is uploaded to it anew, from the brokers' disks
    and the other buckets. Nothing is deleted from the old one."""
    import asyncio

    from strandline.cli.text.replaced_bucket import replace_bucket, replaced_json
    from strandline.cli.text.tiered import open_buckets

    config = config or find_config(bootstrap)
    buckets = open_buckets(config, "")
    if bucket not in buckets:
        raise OperatorError(f"{bucket}: [tiered] buckets of {config} has {', '.join(buckets)}")
    with open_client(bootstrap, timeout) as client:
        found = asyncio.run(
            replace_bucket(client, bucket, buckets[bucket], accepts_loss=accept_loss)
        )

    def tell() -> None:
        for one in found.given_up:
            print_line(f"given up  {one.topic}-{one.partition}: {one.start}..{one.end}")
        print_line(
            f"bucket {bucket}: {found.new_id} is used instead of {found.old_id}; everything is "
            "uploaded anew: see `strandline tiered status`"
        )

    show(replaced_json(found), as_json=as_json, people=tell)


# ---- text ----------------------------------------------------------------------------------------


def _print_status(found: "TierStatus") -> None:
    rows = found.partitions
    for missing in found.missing:
        print_line(f"not known: {missing}")
    if not rows and not found.missing:
        print_line("no topic has remote.storage.enable=true, or anything in a bucket")
    if not rows:
        return
    now_ms = int(time.time() * 1000)
    heads = (
        *("TOPIC", "PARTITION", "LOCAL-START", "END", "BUCKET", "BUCKET-START", "BUCKET-END"),
        *("OBJECTS", "BYTES", "PENDING-BYTES", "PENDING-AGE-S", "UPLOADS", "RETIRED"),
    )
    cells = [
        (
            one.topic,
            one.partition,
            one.local_start_offset,
            one.high_watermark,
            each.bucket if each.is_wanted else f"{each.bucket} (no longer used)",
            each.start_offset,
            each.end_offset,
            each.object_count,
            each.size_bytes,
            each.pending_bytes,
            "-" if each.pending_since_ms < 0 else max(0, now_ms - each.pending_since_ms) // 1000,
            each.upload_count,
            each.removal_count,
        )
        for one in rows
        for each in one.buckets
    ]
    print_table(Table(heads, cells, frozenset(heads) - {"TOPIC", "BUCKET"}))


def _print_buckets(found: "TierStatus") -> None:
    from strandline.cli.text.bucket_sums import HEADS, bucket_sums

    for missing in found.missing:
        print_line(f"not known: {missing}")
    now_ms = int(time.time() * 1000)
    cells = [one.row(now_ms) for one in bucket_sums(found)]
    if cells:
        print_table(Table(HEADS, cells, frozenset(HEADS) - {"BUCKET"}))
    elif not found.missing:
        print_line("no broker has a bucket: [tiered] buckets is empty")


def _print_verified(found: "Verified") -> None:
    for one in found.repaired:
        print_line(f"repaired    {one.bucket}  {one.name}: {one.reason}")
    for one in found.faults:
        print_line(f"{one.verdict:10}  {one.bucket}  {one.name}: {one.reason}")
    for away in found.away.values():
        objects = counted(away.object_count, "object")
        print_line(
            f"away        {away.bucket}: {objects} not read: {away.reason}; bring the bucket back, "
            "or look at the others: --bucket REGION; if it is lost for good: "
            f"`strandline tiered replace {away.bucket}`"
        )
    for missing in found.uncertain:
        print_line(f"not known   {missing}")
    sound = counted(found.sound_count, "object")
    repaired = f", {len(found.repaired)} put again" if found.repaired else ""
    count = sum(one.object_count for one in found.away.values())
    away_ones = f", {count} not read" if found.away else ""
    print_line(
        f"{sound} sound{repaired}, {found.read_bytes} bytes read; {len(found.faults)} not sound"
        f"{away_ones}"
    )


def _print_collected(found: "dict[str, Collected]", *, deletes: bool) -> None:
    for bucket, one in found.items():
        objects = one.sorted
        for orphan in objects.orphans:
            print_line(f"{'deleted' if deletes else 'orphan'}  {bucket}  {orphan.name}")
        for kept in objects.exported:
            print_line(f"kept    {bucket}  {kept.name}: only an export in the bucket names it")
        for place, reason in one.uncertain:
            print_line(f"left    {bucket}  {place.topic_id}/{place.partition}: {reason}")
        size = sum(orphan.size_bytes for orphan in objects.orphans)
        print_line(
            f"{bucket}: {counted(len(objects.known), 'object')} known, {len(objects.young)} too "
            f"young to judge, {counted(len(objects.orphans), 'orphan')} of {size} bytes"
            + (f"; {one.deleted_count} deleted" if deletes else "")
        )
    if not deletes and any(one.sorted.orphans for one in found.values()):
        print_line("nothing was deleted; to delete the orphans: the same command with --delete")
