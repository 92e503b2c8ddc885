"""`strandline pipeline lake`: tables brought up to date with topics."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from strandline.base.errors import OperatorError
from strandline.pipeline.commands.aggregate import draw_means, means_json
from strandline.pipeline.commands.lake_options import (
    AddTopicOption,
    BatchRecordsOption,
    ContinuousOption,
    DeadLettersOption,
    EachOption,
    FilesOption,
    FormatOption,
    IntervalOption,
    KafkaConfigOption,
    KafkaOption,
    KeepRawOption,
    KeyOption,
    LocationOption,
    MessageOption,
    ModeOption,
    NameOption,
    OnGapOption,
    PartitionByOption,
    RackOption,
    ReadFromOption,
    RecoverOption,
    RegistryOption,
    SchemaOption,
    SourceOption,
    StartOffsetOption,
    StartOption,
    SubjectOption,
    TopicsArgument,
    UpsertOption,
    WidenOption,
)
from strandline.pipeline.commands.options import (
    BootstrapOption,
    BucketCredentialsOption,
    BucketsOption,
    ByOption,
    ConfOption,
    JarsOption,
    JsonOption,
    MasterOption,
    MeanOption,
    TableArgument,
    find_cluster,
    session_options,
)
from strandline.pipeline.commands.output import screen, write_json, write_line
from strandline.pipeline.commands.upkeep import plan_upkeep
from strandline.pipeline.commands.upkeep_options import (
    EVERY_DEFAULT,
    KEEP_HOURS_DEFAULT,
    KeepHoursOption,
    UpkeepEveryOption,
)
from strandline.pipeline.lake.cluster import Cluster
from strandline.pipeline.lake.job import Written
from strandline.pipeline.lake.kafka_settings import read_properties
from strandline.pipeline.lake.options import (
    BATCH_RECORDS_DEFAULT,
    LakeOptions,
    Source,
    ValueFormat,
    Widening,
    parse_partition_by,
    read_buckets,
    read_values,
)
from strandline.pipeline.lake.plan import OnGap
from strandline.pipeline.lake.residency import (
    POLICY_KEY,
    Location,
    parse_locations,
    tables_by_residency,
)
from strandline.pipeline.lake.run import LakeResult, Told, Upkeep, run_lakes
from strandline.pipeline.lake.start import parse_start
from strandline.pipeline.lake.table import TableVersion, read_table
from strandline.pipeline.locations import absolute_location
from strandline.pipeline.questions import MeanQuestion, parse_question
from strandline.pipeline.runtime.session import LOCAL_MASTER, SessionOptions
from strandline.pipeline.settings import parse_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.console import Console

    from strandline.pipeline.aggregate import GroupMean


def lake(
    context: typer.Context,
    topics: TopicsArgument = None,
    table: TableArgument = "",
    *,
    bootstrap: BootstrapOption = "",
    each: EachOption = False,
    location: LocationOption = None,
    schema: SchemaOption = None,
    format_: FormatOption = None,
    registry: RegistryOption = None,
    subject: SubjectOption = None,
    message: MessageOption = None,
    mode: ModeOption = "strict",
    keep_raw: KeepRawOption = False,
    key: KeyOption = "raw",
    partition_by: PartitionByOption = None,
    dead_letters: DeadLettersOption = None,
    start: StartOption = "earliest",
    start_offset: StartOffsetOption = None,
    on_gap: OnGapOption = "stop",
    add_topic: AddTopicOption = False,
    recover: RecoverOption = False,
    widen: WidenOption = "rewrite",
    upsert: UpsertOption = False,
    upkeep: UpkeepEveryOption = EVERY_DEFAULT,
    keep_hours: KeepHoursOption = KEEP_HOURS_DEFAULT,
    name: NameOption = "",
    batch_records: BatchRecordsOption = BATCH_RECORDS_DEFAULT,
    files: FilesOption = None,
    continuous: ContinuousOption = False,
    interval_ms: IntervalOption = 10_000,
    source: SourceOption = "strandline",
    rack: RackOption = None,
    buckets: BucketsOption = None,
    bucket_credentials: BucketCredentialsOption = "",
    read_from: ReadFromOption = None,
    kafka: KafkaOption = None,
    kafka_config: KafkaConfigOption = None,
    by: ByOption = None,
    mean: MeanOption = None,
    master: MasterOption = LOCAL_MASTER,
    jars: JarsOption = None,
    conf: ConfOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring a table up to date with topics: each record one row, exactly once, even after kills."""
    topics = _named(topics, table)
    read = read_values(schema, ValueFormat(format_, registry, subject, message), mode)
    options = LakeOptions(
        **find_cluster(context, bootstrap).words,
        topics=tuple(topics),
        table=absolute_location(table),
        name=name,
        schema=read,
        mode=mode,
        keep_raw=keep_raw,
        key=key,
        partition_by=parse_partition_by(partition_by or (), schema=read),
        **_pace(batch_records, files, interval_ms=interval_ms if continuous else None),
        **_reading(source=source, rack=rack, kafka=kafka, file=kafka_config),
        buckets=read_buckets(buckets, bucket_credentials, read_from),
        start=parse_start(start, start_offset or (), topics=topics),
        **_rules(on_gap, widen, add_topics=add_topic, recover=recover, upsert=upsert),
        dead_letters=None if dead_letters is None else absolute_location(dead_letters),
    )
    kept = plan_upkeep(upkeep, keep_hours=keep_hours)
    session = session_options(f"lake {' '.join(topics)}", master=master, jars=jars, conf=conf)
    tables = _tables(options, parse_locations(location or ()), each=each)
    _lake(tables, session, upkeep=kept, question=parse_question(by or (), mean), as_json=as_json)


def _named(topics: list[str] | None, table: str) -> list[str]:
    if not topics:  # The last word is the table, so one word alone is no topic for the parser.
        raise OperatorError(
            "name at least one topic, and behind the topics the table's directory or URI: "
            f"lake {table or 'TOPIC'} TABLE"
        )
    return topics


def _pace(batch_records: int, files: int | None, *, interval_ms: int | None) -> dict[str, Any]:
    return {"batch_records": batch_records, "files": files, "interval_ms": interval_ms}


def _rules(on_gap: OnGap, widen: Widening, **flags: bool) -> dict[str, Any]:
    return {"on_gap": on_gap, "widen": widen, **flags}


def _reading(
    *, source: Source, rack: str | None, kafka: list[str] | None, file: Path | None
) -> dict[str, Any]:
    settings = {} if file is None else read_properties(file)
    settings |= parse_settings(kafka or (), option="--kafka")
    return {"source": source, "rack": rack, "kafka": settings}


def _tables(
    options: LakeOptions, locations: Sequence[Location], *, each: bool
) -> list[LakeOptions]:
    """One table for all topics; with --each one for each topic, below the given location; with
    --location below one that the topic's residency allows."""
    if locations:
        if options.is_secure:
            raise OperatorError(
                "--location asks for placement policies, which only Strandline's client can: give "
                "--client-config in place of --kafka-config"
            )
        with Cluster(options.bootstrap, access=options.access) as cluster:
            policies = cluster.configured(options.topics, POLICY_KEY)
        return tables_by_residency(options, policies, locations)
    if not each:
        return [options]
    return [
        replace(
            options,
            topics=(topic,),
            table=f"{options.table}/{topic}",
            name=f"{options.name}-{topic}" if options.name else "",
            dead_letters=options.dead_letters and f"{options.dead_letters}/{topic}",
        )
        for topic in options.topics
    ]


def _lake(
    tables: list[LakeOptions],
    session: SessionOptions,
    *,
    upkeep: Upkeep,
    question: MeanQuestion | None,
    as_json: bool,
) -> None:
    if question is not None and len(tables) > 1:
        raise OperatorError("--by and --mean ask one table: leave --each and --location out")
    started = time.monotonic()
    shown = screen()
    means: list[GroupMean] = []

    def answer(spark: "SparkSession") -> None:
        from strandline.pipeline.aggregate import mean_by

        assert question is not None
        means.extend(mean_by(spark, tables[0].table, question))

    with shown.status("looking at the topics") as status:
        told = Told(
            batch=lambda result, written: shown.print(
                f"  {describe_batch(result, written, tables=len(tables))}",
                highlight=False,
                soft_wrap=True,
            ),
            notice=_unrepeated(shown),
            status=status.update,
        )
        results = run_lakes(
            tables,
            session,
            told=told,
            upkeep=upkeep,
            then=None if question is None else answer,
        )
    took_ms = round((time.monotonic() - started) * 1000)
    if as_json:
        found = [_json(result, took_ms) for result in results]
        whole = found[0] if len(found) == 1 else {"tables": found, "took_ms": took_ms}
        write_json(whole if question is None else whole | means_json(question, means))
        return
    for result in results:
        _write_result(result, took_ms)
    if question is not None:
        draw_means(question, means)


def describe_batch(result: LakeResult, written: Written, *, tables: int = 1) -> str:
    """A batch in one line; it names its topics if the job fills several tables."""
    parts = [f"{written.records:,} records"]
    if written.malformed:
        parts.append(f"{written.malformed:,} malformed")
    if written.dead_letters:
        parts.append(f"{written.dead_letters:,} dead letters")
    if written.gaps:
        parts.append("1 gap" if written.gaps == 1 else f"{written.gaps:,} gaps")
    parts.append(f"{result.records:,} of {max(result.total, result.records + written.left):,}")
    parts.append(f"{result.rate:,.0f}/s")
    if written.left:
        parts.append(f"behind by {written.left:,} records, {written.lag_ms / 1000:,.0f} s")
        parts.append(f"about {written.left / max(result.rate, 1):,.0f} s left")
    where = f"{', '.join(result.options.topics)}, " if tables > 1 else ""
    return f"{where}batch {written.number}: {', '.join(parts)}"


def _unrepeated(shown: "Console") -> "_Notices":
    return _Notices(shown)


class _Notices:
    """Shows each line once in a row."""

    def __init__(self, shown: "Console") -> None:
        self._shown = shown
        self._last = ""

    def __call__(self, line: str) -> None:
        if line != self._last:
            self._shown.print(f"  {line}", highlight=False, soft_wrap=True)
            self._last = line


def _json(result: LakeResult, took_ms: int) -> dict[str, object]:
    found = _read_local_table(result.options.table)
    return {
        "topics": list(result.options.topics),
        "table": result.options.table,
        "job": result.options.job,
        "batches": result.batches,
        "records": result.records,
        "malformed": result.malformed,
        "dead_letters": result.dead_letters,
        "problems": result.problems,
        "elsewhere": result.elsewhere,
        "gaps": result.gaps,
        "took_ms": took_ms,
        "table_rows": None if found is None else found.rows,
        "table_files": None if found is None else len(found.files),
        "table_version": None if found is None else found.version,
    }


def _write_result(result: LakeResult, took_ms: int) -> None:
    write_line(f"{describe_result(result)}, {took_ms / 1000:.1f} s")
    for reason, count in result.problems.items():
        write_line(f"  {count:,} {reason}")
    found = _read_local_table(result.options.table)
    if found is not None:
        write_line(
            f"{result.options.table}: {found.rows:,} rows in {len(found.files)} files,"
            f" version {found.version}"
        )


def describe_result(result: LakeResult) -> str:
    """What the job read, in one line."""
    batches = "1 batch" if result.batches == 1 else f"{result.batches:,} batches"
    upserts = result.options.upsert
    counts = [f"read {result.records:,} records of {', '.join(result.options.topics)} in {batches}"]
    for count, words in (
        (result.malformed, "of them malformed"),
        (result.dead_letters, "dead letters"),
        (result.elsewhere, "offsets without a row" if upserts else "offsets without a record"),
        (result.gaps, "gap" if result.gaps == 1 else "gaps"),
    ):
        if count:
            counts.append(f"{count:,} {words}")
    return ", ".join(counts)


def _read_local_table(location: str) -> TableVersion | None:
    """What the table's own log says, where it is on this disk and still whole."""
    try:
        return read_table(Path(location))
    except OperatorError:
        return None
