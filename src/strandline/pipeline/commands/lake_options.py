"""The options of `lake`, each with its help, by name.

Why:    the command should read as what it does."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from strandline.pipeline.lake.options import KeyFormat, Mode, Source, Widening
from strandline.pipeline.lake.plan import OnGap

TopicsArgument = Annotated[
    list[str] | None,
    typer.Argument(help="The topics to read; at least one.", metavar="TOPIC", show_default=False),
]
EachOption = Annotated[
    bool, typer.Option("--each", help="Each topic into a table of its own, TABLE/TOPIC.")
]
SchemaOption = Annotated[
    Path | None,
    typer.Option(
        help="File with the fields of the values: Spark DDL for JSON, or a schema of --format; "
        "default: values stay bytes.",
        metavar="FILE",
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="json, json-schema, avro or protobuf; default: what the ending of --schema says.",
        metavar="FORMAT",
    ),
]
RegistryOption = Annotated[
    str | None, typer.Option(help="The schema registry that values have ids of.", metavar="URL")
]
SubjectOption = Annotated[
    str | None, typer.Option(help="The registry's subject whose newest schema the table has.")
]
MessageOption = Annotated[
    str | None, typer.Option(help="Protobuf: the full name of the message.", metavar="NAME")
]
ModeOption = Annotated[
    Mode,
    typer.Option(
        help="A value that does not round-trip: strict has no value, lenient what fits. Its bytes "
        "and the reason are kept in both."
    ),
]
KeepRawOption = Annotated[
    bool, typer.Option("--keep-raw", help="Keep the bytes of every value in a column.")
]
SourceOption = Annotated[
    Source, typer.Option(help="What reads the topics: strandline, or Spark's Kafka connector.")
]
KeyOption = Annotated[KeyFormat, typer.Option(help="Keys as text or as bytes.")]
PartitionByOption = Annotated[
    list[str] | None,
    typer.Option(
        help="A field of the value; hour, day, month or year of the timestamp; or NAME=SQL. "
        "Repeatable. Default: date=to_date(timestamp).",
        metavar="NAME[=SQL]",
    ),
]
DeadLettersOption = Annotated[
    str | None,
    typer.Option(
        help="A table for records that do not fit; default: they stay in the table.",
        metavar="TABLE",
    ),
]
StartOption = Annotated[
    str,
    typer.Option(
        help="Where the table begins in a new topic: earliest, latest or a time (ISO 8601).",
        metavar="WHERE",
    ),
]
StartOffsetOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Where it begins in one partition; repeatable.", metavar="[TOPIC:]PARTITION=OFFSET"
    ),
]
OnGapOption = Annotated[
    OnGap,
    typer.Option(
        help="If records were deleted before they were read: stop, or record the gap in TABLE_gaps "
        "and go on; start-anew also takes up a topic that was made anew."
    ),
]
AddTopicOption = Annotated[
    bool, typer.Option("--add-topic", help="The table takes up topics that it does not hold yet.")
]
RecoverOption = Annotated[
    bool,
    typer.Option(
        "--recover", help="If the table's log does not tell how far it is: go on after its rows."
    ),
]
LocationOption = Annotated[
    list[str] | None,
    typer.Option(
        "--location",
        help="Where tables of a region may lie; repeatable. Each topic gets a table of its own, "
        "below the first location that the residency of its placement policy allows, or below "
        "TABLE if its data may be anywhere. PLACE is a region or LABEL:VALUE,...",
        metavar="PLACE=DIR",
    ),
]
UpsertOption = Annotated[
    bool,
    typer.Option(
        "--upsert",
        help="Keep only the newest record of each key, for compacted topics; a tombstone deletes "
        "its key's row.",
    ),
]
WidenOption = Annotated[
    Widening,
    typer.Option(
        help="If a column must become wider: rewrite all rows in one commit, change it in place "
        "(readers need Delta's typeWidening), or refuse."
    ),
]
NameOption = Annotated[
    str,
    typer.Option(
        help="Name of the job and of the group that shows its offsets; default: lake-TABLE."
    ),
]
BatchRecordsOption = Annotated[int, typer.Option(help="Maximum records per commit of the table.")]
ReadFromOption = Annotated[
    Literal["broker", "bucket", "auto"] | None,
    typer.Option(
        help="auto: tiered records from buckets, others from brokers; bucket: tiered records only; "
        "broker: all from brokers. Default: auto with --buckets.",
        show_default=False,
    ),
]
FilesOption = Annotated[
    int | None,
    typer.Option(
        help="Maximum files per commit in each table partition; default: one for each task."
    ),
]
ContinuousOption = Annotated[
    bool, typer.Option("--continuous", help="Follow the topics until interrupted.")
]
IntervalOption = Annotated[int, typer.Option(help="With --continuous: time between batches.")]
RackOption = Annotated[
    str | None, typer.Option(help="The region to read from, if replicas may serve reads.")
]
KafkaOption = Annotated[
    list[str] | None,
    typer.Option(
        help="With --source kafka: a property of its client; repeatable.", metavar="KEY=VALUE"
    ),
]
KafkaConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--kafka-config",
        help="With --source kafka: a file of such properties, as Kafka's own tools take it; for "
        "TLS and logins. --kafka takes precedence.",
        metavar="FILE",
    ),
]
