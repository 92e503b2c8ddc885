"""`strandline pipeline lake`: a table brought up to date with a topic."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.errors import OperatorError
from strandline.pipeline.commands.aggregate import draw_means, means_json
from strandline.pipeline.commands.options import (
    BatchRecordsOption,
    BootstrapOption,
    ByOption,
    CheckpointOption,
    ConfOption,
    ContinuousOption,
    FilesOption,
    IntervalOption,
    JarsOption,
    JsonOption,
    KafkaOption,
    MasterOption,
    MeanOption,
    PartitionByOption,
    RackOption,
    SchemaOption,
    TableArgument,
    session_options,
)
from strandline.pipeline.commands.output import screen, write_json, write_line
from strandline.pipeline.lake.options import (
    BATCH_RECORDS_DEFAULT,
    KeyFormat,
    LakeOptions,
    check_reachable,
    parse_partition_by,
    read_schema,
)
from strandline.pipeline.lake.table import TableVersion, read_table
from strandline.pipeline.locations import absolute_location
from strandline.pipeline.questions import MeanQuestion, parse_question
from strandline.pipeline.runtime.session import LOCAL_MASTER, SessionOptions, open_session
from strandline.pipeline.settings import parse_settings

if TYPE_CHECKING:
    from strandline.pipeline.aggregate import GroupMean


def lake(
    topic: Annotated[str, typer.Argument(help="The topic to read.")],
    table: TableArgument,
    *,
    bootstrap: BootstrapOption,
    schema: SchemaOption = None,
    key: Annotated[KeyFormat, typer.Option(help="Keys as text or as bytes.")] = "raw",
    partition_by: PartitionByOption = None,
    checkpoint: CheckpointOption = "",
    batch_records: BatchRecordsOption = BATCH_RECORDS_DEFAULT,
    files: FilesOption = 1,
    continuous: ContinuousOption = False,
    interval_ms: IntervalOption = 10_000,
    rack: RackOption = None,
    kafka: KafkaOption = None,
    by: ByOption = None,
    mean: MeanOption = None,
    master: MasterOption = LOCAL_MASTER,
    jars: JarsOption = None,
    conf: ConfOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring a table up to date with a topic: each record is one row, exactly once, even after
    crashes."""
    options = LakeOptions(
        bootstrap=bootstrap,
        topic=topic,
        table=absolute_location(table),
        checkpoint=absolute_location(checkpoint) if checkpoint else "",
        schema=None if schema is None else read_schema(schema),
        key=key,
        partition_by=parse_partition_by(partition_by or (), decoded=schema is not None),
        batch_records=batch_records,
        files=files,
        interval_ms=interval_ms if continuous else None,
        rack=rack,
        kafka=parse_settings(kafka or (), option="--kafka"),
    )
    question = parse_question(by or (), mean)
    session = session_options(f"lake {topic}", master=master, jars=jars, conf=conf)
    check_reachable(bootstrap)
    _lake(options, session, question=question, as_json=as_json)


def _lake(
    options: LakeOptions, session: SessionOptions, *, question: MeanQuestion | None, as_json: bool
) -> None:
    started = time.monotonic()
    shown = screen()
    means: list[GroupMean] = []
    with shown.status("starting Spark") as status, open_session(session) as spark:
        from strandline.pipeline.aggregate import mean_by
        from strandline.pipeline.lake.job import Batch, run_lake

        def on_batch(batch: Batch) -> None:
            shown.print(f"  batch {batch.number}: {batch.records:,} records")

        status.update(f"reading {options.topic}")
        result = run_lake(spark, options, on_batch=on_batch)
        if question is not None:
            status.update(f"counting {options.table}")
            means = mean_by(spark, options.table, question)
    took_ms = round((time.monotonic() - started) * 1000)
    found = _read_local_table(options.table)
    if as_json:
        told = {
            "topic": options.topic,
            "table": options.table,
            "checkpoint": options.checkpoint_location,
            **asdict(result),
            "took_ms": took_ms,
            "table_rows": None if found is None else found.rows,
            "table_files": None if found is None else len(found.files),
            "table_version": None if found is None else found.version,
        }
        write_json(told if question is None else told | means_json(question, means))
        return
    write_line(
        f"read {result.records:,} records of {options.topic} in {result.batches} batches,"
        f" {took_ms / 1000:.1f} s"
    )
    if found is not None:
        write_line(
            f"{options.table}: {found.rows:,} rows in {len(found.files)} files,"
            f" version {found.version}"
        )
    if question is not None:
        draw_means(question, means)


def _read_local_table(location: str) -> TableVersion | None:
    """What the table's own log says, where it is on this disk and still whole."""
    try:
        return read_table(Path(location))
    except OperatorError:
        return None
