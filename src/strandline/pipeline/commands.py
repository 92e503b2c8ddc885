"""The command line of the pipelines: `strandline pipeline lake|aggregate|jars|java`.

Why:    people and programs start the same jobs with the same words, here and under spark-submit.
How:    each command checks its options, then opens a session and hands over; pyspark is imported
        only then, so that `--help` stays instant. Tables and progress for people on stderr, with
        --json one object on stdout."""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.errors import OperatorError
from strandline.pipeline.command_options import (
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
)
from strandline.pipeline.jars import default_directory, ensure_jars
from strandline.pipeline.java import find_java, find_or_install_java
from strandline.pipeline.options import (
    BATCH_RECORDS_DEFAULT,
    KeyFormat,
    LakeOptions,
    MeanQuestion,
    absolute_location,
    check_reachable,
    existing_table,
    parse_partition_by,
    parse_question,
    parse_settings,
    read_schema,
)
from strandline.pipeline.resolvers import default_resolvers
from strandline.pipeline.session import LOCAL_MASTER, SessionOptions, open_session
from strandline.pipeline.table import TableVersion, read_table

if TYPE_CHECKING:
    from rich.console import Console

    from strandline.pipeline.aggregate import GroupMean

app = typer.Typer(
    name="pipeline",
    help="Topics into lake tables with Spark, here or on a cluster.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.command()
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
    session = _session_options(f"lake {topic}", master=master, jars=jars, conf=conf)
    check_reachable(bootstrap)
    _lake(options, session, question=question, as_json=as_json)


def _lake(
    options: LakeOptions, session: SessionOptions, *, question: MeanQuestion | None, as_json: bool
) -> None:
    started = time.monotonic()
    screen = _screen()
    means: list[GroupMean] = []
    with screen.status("starting Spark") as status, open_session(session) as spark:
        from strandline.pipeline.aggregate import mean_by
        from strandline.pipeline.lake import Batch, run_lake

        def on_batch(batch: Batch) -> None:
            screen.print(f"  batch {batch.number}: {batch.records:,} records")

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
        _write_json(told if question is None else told | _means_json(question, means))
        return
    _write_line(
        f"read {result.records:,} records of {options.topic} in {result.batches} batches,"
        f" {took_ms / 1000:.1f} s"
    )
    if found is not None:
        _write_line(
            f"{options.table}: {found.rows:,} rows in {len(found.files)} files,"
            f" version {found.version}"
        )
    if question is not None:
        _draw_means(question, means)


@app.command()
def aggregate(
    table: TableArgument,
    *,
    by: ByOption = None,
    mean: MeanOption = None,
    master: MasterOption = LOCAL_MASTER,
    jars: JarsOption = None,
    conf: ConfOption = None,
    as_json: JsonOption = False,
) -> None:
    """Average columns of a table, by group: --by carrier --mean value.arr_delay."""
    location = existing_table(table)
    question = parse_question(by or (), mean)
    if question is None:
        raise OperatorError("nothing to count: give --by and --mean")
    session = _session_options("aggregate", master=master, jars=jars, conf=conf)
    with _screen().status("starting Spark") as status, open_session(session) as spark:
        from strandline.pipeline.aggregate import mean_by

        status.update(f"counting {table}")
        means = mean_by(spark, location, question)
    if as_json:
        _write_json(_means_json(question, means))
        return
    _draw_means(question, means)


@app.command()
def jars(
    *,
    directory: JarsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Resolve the jars that the jobs need and print their paths, as for spark-submit's --jars."""
    found = ensure_jars(directory or default_directory(), default_resolvers(find_java()))
    if as_json:
        _write_json({"jars": [str(path.absolute()) for path in found]})
        return
    _write_line(",".join(str(path.absolute()) for path in found))


@app.command()
def java(
    *,
    install: Annotated[
        bool,
        typer.Option("--install", help="Install Debian's if there is none (needs root)."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Find the Java runtime for the jobs, and print its home."""
    found = find_or_install_java() if install else find_java()
    if as_json:
        _write_json({"home": str(found.home), "major": found.major})
        return
    _write_line(str(found.home))


def _means_json(question: MeanQuestion, means: Sequence["GroupMean"]) -> dict[str, object]:
    groups = [asdict(each) for each in means]
    return {"by": question.by, "mean": question.of, "groups": groups}


def _draw_means(question: MeanQuestion, means: Sequence["GroupMean"]) -> None:
    from rich.console import Console
    from rich.table import Table

    drawn = Table(*question.by, title=f"mean of {question.of}")
    for name in ("mean", "values", "rows"):
        drawn.add_column(name, justify="right")
    for each in means:
        shown = "-" if each.mean is None else f"{each.mean:.6f}"
        names = ("-" if part is None else part for part in each.group)
        drawn.add_row(*names, shown, f"{each.values:,}", f"{each.rows:,}")
    Console().print(drawn)


def main() -> None:
    """The command line as a program: an operator's error is one line on stderr, exit code 1."""
    try:
        app(prog_name="strandline pipeline")
    except OperatorError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def _screen() -> "Console":
    """Where progress is shown: stderr, so that results alone are on stdout."""
    from rich.console import Console

    return Console(stderr=True)


def _session_options(
    name: str, *, master: str, jars: Path | None, conf: list[str] | None
) -> SessionOptions:
    return SessionOptions(
        name=f"strandline {name}",
        jars_directory=jars or default_directory(),
        master=master,
        conf=parse_settings(conf or (), option="--conf"),
    )


def _read_local_table(location: str) -> TableVersion | None:
    """What the table's own log says, where it is on this disk and still whole."""
    try:
        return read_table(Path(location))
    except OperatorError:
        return None


def _write_json(content: dict[str, object]) -> None:
    _write_line(json.dumps(content))


def _write_line(line: str) -> None:
    sys.stdout.write(line + "\n")
