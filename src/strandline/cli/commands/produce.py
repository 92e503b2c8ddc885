"""`strandline produce`: send lines to a topic, one record each.

How:    lines that are available at once go into one batch per partition; when no line is waiting,
        the batches are sent. Typing a line sends it; a file goes in full batches.
Source: docs/reference/cli.md."""

import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.json_value import Json
from strandline.cli.options import (
    DEFAULT_TIMEOUT_S,
    AsJson,
    Bootstrap,
    Timeout,
    open_client,
    parse_pairs,
)
from strandline.cli.output import print_line, show
from strandline.cli.text.leaderless import point_to_status

if TYPE_CHECKING:
    from strandline.client.producer import Producer

READ_BYTES = 1024 * 1024
PROGRESS_INTERVAL_S = 0.2
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
ACKS = {"0": 0, "1": 1, "all": -1}


def produce(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.")],
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", "-f", metavar="FILE", help="Read this file instead of standard input."
        ),
    ] = None,
    key: Annotated[str | None, typer.Option("--key", "-k", help="The key of every record.")] = None,
    key_separator: Annotated[
        str,
        typer.Option("--key-separator", "-K", metavar="TEXT", help="Text between key and value."),
    ] = "",
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", min=0, help="Send to this partition only.")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", metavar="KEY=VALUE", help="A header; may be repeated."),
    ] = None,
    compression: Annotated[
        str, typer.Option("--compression", "-z", metavar="|".join(CODECS), help="The codec.")
    ] = "none",
    acks: Annotated[
        str,
        typer.Option(
            "--acks",
            metavar="|".join(ACKS),
            help="Which brokers must have a record: none, the leader, or the write quorum.",
        ),
    ] = "all",
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Send lines to a topic, one record each; returns when all are acknowledged."""
    from strandline.client.producer import Producer, ProducerSettings

    settings = ProducerSettings(
        acks=_choice("--acks", acks, ACKS), codec=_choice("--compression", compression, CODECS)
    )
    headers = [
        (name, text.encode(errors="surrogateescape"))
        for name, text in parse_pairs(header, option="--header")
    ]
    separator = _unescape(key_separator)
    fixed_key = None if key is None else key.encode(errors="surrogateescape")
    progress = _Progress()
    with open_client(bootstrap, timeout) as client, point_to_status(topic):
        producer = Producer(client, topic, settings)
        for line in read_lines(file, on_idle=producer.flush):
            record_key, value = fixed_key, line
            if separator and separator in line:
                record_key, _, value = line.partition(separator)
            producer.send(value, key=record_key, partition=partition, headers=headers)
            progress.count()
        producer.flush()
    progress.end()
    show(_summary(topic, producer), as_json=as_json, people=lambda: _print_summary(topic, producer))


def read_lines(file: Path | None, *, on_idle: Callable[[], None]) -> Iterator[bytes]:
    """The lines of a file, or of standard input, without their ends; calls `on_idle` when the next
    one is not there yet."""
    from strandline.base.errors import OperatorError

    try:
        descriptor = 0 if file is None else os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise OperatorError(f"{file}: cannot read: {error.strerror}") from error
    try:
        rest = b""
        while chunk := os.read(descriptor, READ_BYTES):
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            for line in lines:
                yield line.removesuffix(b"\r")
            if not select.select([descriptor], [], [], 0)[0]:
                on_idle()
        if rest:
            yield rest
    finally:
        if file is not None:
            os.close(descriptor)


class _Progress:
    """A count of records on a terminal's standard error, and nothing elsewhere."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty() and not sys.stdin.isatty()
        self._records_count = 0
        self._started_s = self._drawn_s = time.monotonic()

    def count(self) -> None:
        """One more record has been read."""
        self._records_count += 1
        if self._is_shown and self._records_count % 256 == 0:
            now_s = time.monotonic()
            if now_s - self._drawn_s >= PROGRESS_INTERVAL_S:
                self._drawn_s = now_s
                rate = self._records_count / (now_s - self._started_s)
                sys.stderr.write(f"\r{self._records_count} records, {rate:,.0f}/s ")
                sys.stderr.flush()

    def end(self) -> None:
        """Leave the line clean."""
        if self._is_shown and self._drawn_s != self._started_s:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _summary(topic: str, producer: "Producer") -> Json:
    acknowledged = sorted(producer.acknowledged.items())
    return {
        "topic": topic,
        "records": sum(one.records_count for _, one in acknowledged),
        "partitions": [
            {
                "partition": index,
                "records": one.records_count,
                "first_offset": one.first_offset,
                "last_offset": one.last_offset,
            }
            for index, one in acknowledged
        ],
    }


def _print_summary(topic: str, producer: "Producer") -> None:
    for index, one in sorted(producer.acknowledged.items()):
        where = f" at {one.first_offset} to {one.last_offset}" if one.first_offset >= 0 else ""
        print_line(f"{topic}-{index}: {one.records_count} records{where}")


def _unescape(text: str) -> bytes:
    """`\\t` and its like, as people type them, and everything else as it is."""
    for typed, meant in (("\\t", "\t"), ("\\n", "\n"), ("\\0", "\0")):
        text = text.replace(typed, meant)
    return text.encode(errors="surrogateescape")


def _choice(option: str, text: str, choices: dict[str, int]) -> int:
    from strandline.base.errors import OperatorError
    from strandline.config.keys import alternatives

    if text not in choices:
        raise OperatorError(f"{option} {text!r}: expected {alternatives(tuple(choices))}")
    return choices[text]
