"""Options of a lake job, checked before a Java virtual machine starts.

Why:    a misspelt option should fail at once, not after the twenty seconds that Spark needs.
How:    frozen dataclasses that reject invalid values with one line; `reader_options` are the Kafka
        connector's.
Owns:   nothing; pure but for `check_reachable`, which tries to connect."""

import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from strandline.base.errors import OperatorError

RECORD_COLUMNS = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "key",
    "headers",
    "value",
    "malformed",
)
"""The columns of every lake table, in order; `malformed` only where values are decoded."""

KeyFormat = Literal["text", "raw"]

BATCH_RECORDS_DEFAULT = 1_000_000
CONNECT_TIMEOUT_MS = 3_000

# The connector asks ListOffsets twice after every poll; polls of 500 records, the default, halve
# its speed.
_FETCH_OPTIONS = {
    "kafka.max.poll.records": "20000",
    "kafka.max.partition.fetch.bytes": str(8 << 20),
    "kafka.default.api.timeout.ms": "60000",
}
_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
_COLUMN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """A column that the table is partitioned by: its name and the Spark SQL that gives it."""

    name: str
    expression: str


def parse_partition_by(words: Sequence[str], *, decoded: bool) -> tuple[PartitionColumn, ...]:
    """Partition columns from `NAME` (a field of the decoded value) and `NAME=EXPRESSION`.

    No words at all mean one directory a day of the records' timestamps.
    """
    columns = [_parse_partition_column(word, decoded=decoded) for word in words]
    names = [column.name.lower() for column in columns]
    for name in names:
        if name in RECORD_COLUMNS:
            raise OperatorError(
                f"--partition-by {name}: the table already has this column: write NEW=EXPRESSION"
            )
        if names.count(name) > 1:
            raise OperatorError(f"--partition-by {name}: given twice")
    return tuple(columns) or (PartitionColumn("date", "to_date(timestamp)"),)


def _parse_partition_column(word: str, *, decoded: bool) -> PartitionColumn:
    name, equals, expression = (part.strip() for part in word.partition("="))
    if not _COLUMN_NAME.fullmatch(name) or (equals and not expression):
        raise OperatorError(f"--partition-by {word}: expected NAME or NAME=EXPRESSION")
    if equals:
        return PartitionColumn(name, expression)
    if not decoded:
        raise OperatorError(
            f"--partition-by {name}: raw values have no fields: give --schema, or NAME=EXPRESSION"
        )
    return PartitionColumn(name, f"value.`{name}`")


def read_schema(path: Path) -> str:
    """The Spark DDL in a file: `name TYPE, ...`; lines that begin with `--` are comments."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorError(f"--schema {path}: cannot read: {error}") from error
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
    ddl = " ".join(" ".join(lines).split()).rstrip(",; ")
    if not ddl:
        raise OperatorError(f"--schema {path}: empty: expected `name TYPE, name TYPE, ...`")
    return ddl


@dataclass(frozen=True, slots=True)
class LakeOptions:
    """One topic into one table."""

    bootstrap: str
    """`host:port,host:port`: any brokers of the cluster."""
    topic: str
    table: str
    """Where the table lies: an absolute local path, or a URI that Spark's file systems know."""
    checkpoint: str = ""
    """Where the job keeps its progress; empty means inside the table's directory."""
    schema: str | None = None
    """Spark DDL of the JSON values; None keeps values as bytes."""
    key: KeyFormat = "raw"
    partition_by: tuple[PartitionColumn, ...] = (PartitionColumn("date", "to_date(timestamp)"),)
    batch_records: int = BATCH_RECORDS_DEFAULT
    """Most records in one commit of the table."""
    files: int = 1
    """Most files that one commit writes into each of the table's partitions, each by one task."""
    interval_ms: int | None = None
    """From one batch to the next of a job that runs until stopped; None: end at the end of now."""
    rack: str | None = None
    """The region to read from, for brokers that let clients read from the nearest replica."""
    kafka: Mapping[str, str] = field(default_factory=dict)
    """More properties for the Kafka client, such as those of its security."""

    def __post_init__(self) -> None:
        parse_bootstrap(self.bootstrap)
        if not _TOPIC_NAME.fullmatch(self.topic) or self.topic in (".", ".."):
            raise OperatorError(f"{self.topic!r} is not a legal topic name")
        if self.batch_records < 1:
            raise OperatorError(f"--batch-records {self.batch_records}: must be at least 1")
        if self.files < 1:
            raise OperatorError(f"--files {self.files}: must be at least 1")
        if self.interval_ms is not None and self.interval_ms < 0:
            raise OperatorError(f"--interval-ms {self.interval_ms}: must be 0 or more")

    @property
    def checkpoint_location(self) -> str:
        """The job's own directory. Names that begin with `_` are not part of a Delta table."""
        return self.checkpoint or f"{self.table}/_checkpoints/{self.topic}"


def reader_options(options: LakeOptions) -> dict[str, str]:
    """The options of Spark's Kafka source."""
    chosen = {
        **_FETCH_OPTIONS,
        "kafka.bootstrap.servers": options.bootstrap,
        "subscribe": options.topic,
        "startingOffsets": "earliest",
        "includeHeaders": "true",
        "maxOffsetsPerTrigger": str(options.batch_records),
        # Rows of a transaction that was given up must not land in a table.
        "kafka.isolation.level": "read_committed",
        # Records that retention removed before they were read are an error, not a silent hole.
        "failOnDataLoss": "true",
    }
    if options.rack is not None:
        chosen["kafka.client.rack"] = options.rack
    chosen.update({f"kafka.{key}": value for key, value in options.kafka.items()})
    return chosen


def parse_bootstrap(bootstrap: str) -> list[tuple[str, int]]:
    """Host and port of each address of `host:port,host:port`."""
    addresses = []
    for address in bootstrap.split(","):
        host, colon, port = address.strip().rpartition(":")
        if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise OperatorError(f"--bootstrap {address!r}: expected host:port,host:port")
        addresses.append((host.strip("[]"), int(port)))
    return addresses


def check_reachable(bootstrap: str, *, timeout_ms: int = CONNECT_TIMEOUT_MS) -> None:
    """Raises OperatorError when none of the addresses takes a connection."""
    reasons = []
    for host, port in parse_bootstrap(bootstrap):
        try:
            with socket.create_connection((host, port), timeout=timeout_ms / 1000):
                return
        except OSError as error:
            reasons.append(f"{host}:{port}: {error.strerror or error}")
    raise OperatorError(f"no broker answers ({'; '.join(reasons)}): is the cluster up?")
