"""`strandline consume`: read a topic, one line a record.

Source: docs/reference/cli.md."""

import base64
import json
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.json_value import Json
from strandline.base.printable import printable_json
from strandline.cli.options import DEFAULT_TIMEOUT_S, AsJson, Bootstrap, Timeout, open_client
from strandline.cli.text.leaderless import point_to_status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from strandline.client.cluster import Client
    from strandline.client.consumer import ConsumedRecord

ENDS_SHOWN_MAX = 5


def consume(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.")],
    start: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="earliest|latest|OFFSET|@MS",
            help="Where to start: an offset applies to each partition, @MS is a time in ms.",
        ),
    ] = "earliest",
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="Stop after this many records.")
    ] = None,
    exit_at_end: Annotated[
        bool,
        typer.Option(
            "--exit-at-end", "-e", help="Stop at the end that each partition has at the start."
        ),
    ] = False,
    partition: Annotated[
        list[int] | None,
        typer.Option("--partition", "-p", min=0, help="Only this partition; may be repeated."),
    ] = None,
    keys: Annotated[
        bool, typer.Option("--keys", help="Print the key and a tab before each value.")
    ] = False,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Read a topic without a group: one line per record, or with --json one object per line."""
    from strandline.client.admin import LATEST, list_offsets
    from strandline.client.consumer import Consumer

    left = count
    render = _as_json if as_json else _with_key if keys else _as_value
    with open_client(bootstrap, timeout) as client, point_to_status(topic):
        positions = find_positions(client, topic, start, partition)
        ends = list_offsets(client, topic, LATEST, partitions=partition) if exit_at_end else {}
        with closing(Consumer(client, topic, positions)) as consumer:
            while left != 0 and (
                not exit_at_end or any(consumer.positions[at] < end for at, end in ends.items())
            ):
                records = consumer.poll()
                if exit_at_end:
                    records = [one for one in records if one.offset < ends[one.partition]]
                if left is not None:
                    records = records[:left]
                    left -= len(records)
                # Bytes as they are, whether or not they are text.
                sys.stdout.buffer.write(b"".join(map(render, records)))
                sys.stdout.buffer.flush()


def find_positions(
    client: "Client", topic: str, start: str, partitions: list[int] | None
) -> dict[int, int]:
    """{partition: first offset to read}; raises OperatorError when `start` cannot be understood."""
    from strandline.base.errors import OperatorError
    from strandline.client.admin import EARLIEST, LATEST, list_offsets

    named = {"earliest": EARLIEST, "latest": LATEST}
    if start in named:
        return list_offsets(client, topic, named[start], partitions=partitions)
    number = start.removeprefix("@")
    if not (number.isascii() and number.isdigit() and len(number) <= 18):
        raise OperatorError(
            f"--from {start!r}: expected earliest, latest, an offset, or @ and a time in ms"
        )
    ends = list_offsets(client, topic, LATEST, partitions=partitions)
    if start.startswith("@"):
        found = list_offsets(client, topic, int(number), partitions=partitions)
        if found and max(found.values()) < 0:
            sys.stderr.write(
                f"note: --from {start}: topic {topic} has no record of that time or "
                "later, and is read from its end\n"
            )
        return {index: offset if offset >= 0 else ends[index] for index, offset in found.items()}
    return _from_offset(topic, int(number), ends)


def _from_offset(topic: str, offset: int, ends: "Mapping[int, int]") -> dict[int, int]:
    """Where each partition is read from; raises OperatorError where it is beyond the end of all. A
    partition that ends before is read from its end, with a note."""
    from strandline.base.errors import OperatorError

    short = {index: end for index, end in ends.items() if end < offset}
    shown = sorted(short.items())[:ENDS_SHOWN_MAX]
    found = ", ".join(f"partition {index} ends at {end}" for index, end in shown)
    found += f", and {len(short) - len(shown)} more before" if len(short) > len(shown) else ""
    if len(short) == len(ends):
        raise OperatorError(f"--from {offset} is beyond the end of topic {topic}: {found}")
    if short:
        sys.stderr.write(f"note: --from {offset}: {found}, and is read from there\n")
    return {index: min(offset, end) for index, end in ends.items()}


def _as_value(record: "ConsumedRecord") -> bytes:
    return (record.value or b"") + b"\n"


def _with_key(record: "ConsumedRecord") -> bytes:
    return b"".join((record.key or b"", b"\t", record.value or b"", b"\n"))


def _as_json(record: "ConsumedRecord") -> bytes:
    return printable_json(json.dumps(_describe(record), ensure_ascii=False)).encode() + b"\n"


def _describe(record: "ConsumedRecord") -> Json:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        **_bytes("key", record.key),
        **_bytes("value", record.value),
        "headers": [
            {**_bytes("key", name.encode(errors="surrogateescape")), **_bytes("value", value)}
            for name, value in record.headers
        ],
    }


def _bytes(name: str, value: bytes | None) -> dict[str, Json]:
    """Text where it is text, else base64 under a name that says so."""
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value).decode()}
