"""Options of a lake job, checked before a Java virtual machine starts.

Why:    a misspelt option should fail at once, not after the twenty seconds that Spark needs.
How:    frozen dataclasses that reject invalid values with one line.
Owns:   nothing; pure but for `read_schema`, which reads a file."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from strandline.base.errors import OperatorError
from strandline.client.access import Access
from strandline.client.buckets.options import BucketOptions, ReadFrom, bucket_options
from strandline.pipeline.lake.kafka_settings import PROTOCOL, check_kafka_settings, is_secure
from strandline.pipeline.lake.plan import OnGap
from strandline.pipeline.lake.start import Start

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from strandline.pipeline.values.decoding import Decoder

RECORD_COLUMNS = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "key",
    "malformed_key",
    "headers",
    "malformed",
    "problem",
    "raw",
    "value",
)
"""The columns that lake tables can have, in order, before the columns they are partitioned by."""

KeyFormat = Literal["text", "raw"]
Mode = Literal["strict", "lenient"]
"""What happens to a value that does not round-trip: `pipeline/values/decoding.py`."""
Source = Literal["strandline", "kafka"]
Widening = Literal["rewrite", "in-place", "refuse"]

BATCH_RECORDS_DEFAULT = 1_000_000
TOPICS_MAX = 1_000

TIME_COLUMNS: Mapping[str, str] = {
    "hour": "date_format(timestamp, 'yyyy-MM-dd-HH')",
    "day": "to_date(timestamp)",
    "month": "date_format(timestamp, 'yyyy-MM')",
    "year": "year(timestamp)",
}
"""What `--partition-by NAME` means if the value has no field of this name."""

_NOT_IN_NAMES = re.compile(r"[ ,;{}()\n\t=]")
"""What Delta and Parquet take in no field's name."""
_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
_COLUMN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class ValueFormat:
    """What --format, --registry, --subject and --message say; `pipeline/values/formats.py`."""

    name: str | None = None
    """None: what the ending of the schema file says, else JSON with Spark DDL."""
    registry: str | None = None
    subject: str | None = None
    message: str | None = None

    def open(self, schema: Path | None, mode: Mode) -> "Decoder":
        """The decoder; OperatorError for words that do not go together, or a bad schema."""
        from strandline.pipeline.values.formats import ENDINGS, open_decoder

        known = schema is None or schema.suffix in ENDINGS
        return open_decoder(
            self.name or (None if known else "json"),
            schema=schema,
            registry=self.registry,
            subject=self.subject,
            message=self.message,
            mode=mode,
        )


@dataclass(frozen=True, slots=True)
class ValueSchema:
    """The type of values, and the file that says so."""

    path: Path
    type: "StructType"
    opened: "Decoder | None" = None
    """The decoder, where the values are not JSON with Spark DDL."""

    def decoder(self, mode: Mode) -> "Decoder":
        """What turns bytes into values of the type."""
        from strandline.pipeline.values.json.decoder import json_decoder

        return json_decoder(self.type, mode) if self.opened is None else self.opened

    @property
    def fingerprint(self) -> str:
        """Equal for schemas that decode equal bytes equally."""
        kind = "json" if self.opened is None else type(self.opened).__name__
        return f"{kind} {self.type.json()}"


def read_values(path: Path | None, words: ValueFormat, mode: Mode) -> ValueSchema | None:
    """How values are decoded; None if nothing says so. OperatorError names the file."""
    if path is None and words == ValueFormat():
        return None
    if words.name == "text":
        raise OperatorError(
            "--format text: a table has values as bytes or with fields; leave it out"
        )
    try:
        decoder = words.open(path, mode)
    except ImportError as error:
        raise OperatorError(
            "PySpark is not installed: pip install 'strandline[pipeline]'"
        ) from error
    from pyspark.sql.types import StructType

    if not isinstance(decoder.type, StructType):
        raise OperatorError(
            f"--schema {path}: values need fields, not {decoder.type.simpleString()}"
        )
    return ValueSchema(path or Path("of the registry"), decoder.type, decoder)


def read_buckets(
    buckets: str | None, credentials_file: str, read_from: ReadFrom | None
) -> BucketOptions | None:
    """What --buckets, --bucket-credentials and --read-from say; OperatorError for bad words."""
    if not buckets and read_from in (None, "broker"):
        return None
    return bucket_options(read_from or "auto", buckets or "", credentials_file)


def read_schema(path: Path) -> ValueSchema:
    """The schema in a file of Spark DDL; OperatorError names the file and the line."""
    try:
        from strandline.pipeline.values.ddl import read_ddl
    except ImportError as error:
        raise OperatorError(
            "PySpark is not installed: pip install 'strandline[pipeline]'"
        ) from error
    return ValueSchema(path, read_ddl(path))


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """A column that the table is partitioned by: its name and the Spark SQL that gives it."""

    name: str
    expression: str


def parse_partition_by(
    words: Sequence[str], *, schema: ValueSchema | None
) -> tuple[PartitionColumn, ...]:
    """Partition columns from `NAME` (a field of the decoded value, else one of TIME_COLUMNS) and
    `NAME=EXPRESSION`.

    No words at all mean one directory a day of the records' timestamps.
    """
    named = [_split_partition_column(word) for word in words]
    names = [name.lower() for name, _ in named]
    for name in names:
        if name in RECORD_COLUMNS:
            raise OperatorError(
                f"--partition-by {name}: the table already has this column: write NEW=EXPRESSION"
            )
        if names.count(name) > 1:
            raise OperatorError(f"--partition-by {name}: given twice")
    columns = [_partition_column(*pair, schema) for pair in named]
    return tuple(columns) or (PartitionColumn("date", "to_date(timestamp)"),)


def _split_partition_column(word: str) -> tuple[str, str]:
    """Name and expression; the expression is empty for a field of the value."""
    name, equals, expression = (part.strip() for part in word.partition("="))
    if not _COLUMN_NAME.fullmatch(name) or (equals and not expression):
        raise OperatorError(f"--partition-by {word}: expected NAME or NAME=EXPRESSION")
    return name, expression


def _partition_column(name: str, expression: str, schema: ValueSchema | None) -> PartitionColumn:
    if expression:
        return PartitionColumn(name, expression)
    if name in TIME_COLUMNS and (schema is None or name not in schema.type.fieldNames()):
        return PartitionColumn(name, TIME_COLUMNS[name])
    if schema is None:
        raise OperatorError(
            f"--partition-by {name}: raw values have no fields: give --schema, or NAME=EXPRESSION"
        )
    if name not in schema.type.fieldNames():
        known = ", ".join(TIME_COLUMNS)
        raise OperatorError(
            f"--partition-by {name}: {schema.path} has no field {name}: name one that it has, one "
            f"of {known} (of the timestamp), or write {name}=EXPRESSION"
        )
    return PartitionColumn(name, f"value.`{name}`")


@dataclass(frozen=True, slots=True)
class LakeOptions:
    """Topics into one table."""

    bootstrap: str
    """`host:port,host:port`: any brokers of the cluster."""
    topics: tuple[str, ...]
    table: str
    """Where the table lies: an absolute local path, or a URI that Spark's file systems know."""
    name: str = ""
    """Of the job, and of the group whose committed offsets show how far it is."""
    schema: ValueSchema | None = None
    """The type of JSON values; None keeps values as bytes."""
    mode: Mode = "strict"
    keep_raw: bool = False
    """Whether each row also has its value's bytes."""
    source: Source = "strandline"
    """The data source that reads: our own, or Spark's Kafka connector."""
    key: KeyFormat = "raw"
    partition_by: tuple[PartitionColumn, ...] = (PartitionColumn("date", "to_date(timestamp)"),)
    batch_records: int = BATCH_RECORDS_DEFAULT
    """Most records in one commit of the table."""
    files: int | None = None
    """Most files that one commit writes into each of the table's partitions; None: each task
    writes its own, and no record crosses the network between tasks."""
    interval_ms: int | None = None
    """From one batch to the next of a job that runs until stopped; None: end at the end of now."""
    rack: str | None = None
    """The region to read from, for brokers that let clients read from the nearest replica."""
    buckets: BucketOptions | None = None
    """Buckets that old records come from; None: all come from brokers."""
    access: Access | None = None
    """How brokers are reached; None: over plain connections, or as `kafka` says."""
    kafka: Mapping[str, str] = field(default_factory=dict, repr=False)
    """More properties for the Kafka client; passwords may be among them."""
    start: Start = field(default_factory=Start)
    """Where topics begin that the table does not know yet."""
    on_gap: OnGap = "stop"
    add_topics: bool = False
    """Whether the table may take up topics that it does not know yet."""
    upsert: bool = False
    """Whether the table has only the newest record of each key, and no row for a tombstone."""
    recover: bool = False
    """Take progress from the table's rows, for its log does not tell it."""
    dead_letters: str | None = None
    """A table for records that do not fit; None: they stay in the table."""
    widen: Widening = "rewrite"
    """How a column of the table becomes wider."""

    def __post_init__(self) -> None:
        for topic in self.topics:
            if not _TOPIC_NAME.fullmatch(topic) or topic in (".", ".."):
                raise OperatorError(f"{topic!r} is not a legal topic name")
        if len(set(self.topics)) < len(self.topics):
            raise OperatorError("a topic is given twice")
        if len(self.topics) > TOPICS_MAX:
            raise OperatorError(f"{len(self.topics)} topics: a job reads at most {TOPICS_MAX}")
        if self.batch_records < 1:
            raise OperatorError(f"--batch-records {self.batch_records}: must be at least 1")
        if self.files is not None and self.files < 1:
            raise OperatorError(f"--files {self.files}: must be at least 1")
        if self.interval_ms is not None and self.interval_ms < 0:
            raise OperatorError(f"--interval-ms {self.interval_ms}: must be 0 or more")
        if self.dead_letters in (self.table, self.gaps_table):
            raise OperatorError("--dead-letters: name another table than the one for the records")
        if self.schema is None and (self.mode != "strict" or self.keep_raw):
            raise OperatorError("--mode and --keep-raw are about decoded values: give --schema")
        if self.kafka and self.source != "kafka":
            raise OperatorError(
                "--kafka and --kafka-config are about the Kafka connector: add --source kafka"
            )
        if self.buckets is not None and self.source != "strandline":
            raise OperatorError("--buckets: only the source strandline reads buckets")
        check_kafka_settings(self.kafka)
        if self.access is not None and self.is_secure:
            raise OperatorError(
                "--client-config and --kafka-config both say how brokers are reached: leave "
                f"{PROTOCOL} to --client-config"
            )
        if self.schema is not None:
            _check_names(self.schema)

    @property
    def job(self) -> str:
        """The job's name: the given one, or `lake-` and the last part of the table's location."""
        last = self.table.rstrip("/").rpartition("/")[2]
        return self.name or "lake-" + re.sub(r"[^A-Za-z0-9._-]", "-", last)

    @property
    def is_secure(self) -> bool:
        """Whether the properties of Kafka's client alone say how TLS and logins are done."""
        return is_secure(self.kafka)

    @property
    def gaps_table(self) -> str:
        """The table of gaps, beside the table."""
        return f"{self.table.rstrip('/')}_gaps"

    @property
    def partition_texts(self) -> tuple[str, ...]:
        """`NAME=SQL` of each partition column."""
        return tuple(f"{column.name}={column.expression}" for column in self.partition_by)


def check_apart(tables: Sequence[LakeOptions]) -> None:
    """Raises OperatorError if a run would write two of its tables to one place, as those of topics
    `a` and `a_gaps`: each takes the number of a batch once, so one would lose rows."""
    used: dict[str, str] = {}
    for options in tables:
        topics = ", ".join(options.topics)
        found = {
            options.table: f"the table of {topics}",
            options.gaps_table: f"the table of gaps of {topics}",
        }
        if options.dead_letters is not None:
            found = {**found, options.dead_letters: f"the dead letters of {topics}"}
        for location, what in found.items():
            if location in used:
                raise OperatorError(
                    f"{location} would be both {used[location]} and {what}: give one of them "
                    "another place"
                )
            used[location] = what


def _check_names(schema: ValueSchema) -> None:
    from strandline.pipeline.values.evolution import paths

    for path, _ in paths(schema.type):
        if _NOT_IN_NAMES.search(path):
            raise OperatorError(
                f"{schema.path}: field {path!r}: a Delta table takes no name with a space or any "
                "of ,;{}()= : have the producer rename it, or keep values as bytes without --schema"
            )
