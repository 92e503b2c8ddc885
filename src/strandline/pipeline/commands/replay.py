"""`strandline pipeline replay`: dead letters that fit a new schema become rows of their table."""

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.errors import OperatorError
from strandline.pipeline.commands.lake_options import (
    FormatOption,
    MessageOption,
    ModeOption,
    RegistryOption,
    SchemaOption,
    SubjectOption,
)
from strandline.pipeline.commands.options import (
    ConfOption,
    JarsOption,
    JsonOption,
    MasterOption,
    session_options,
)
from strandline.pipeline.commands.output import screen, write_json, write_line
from strandline.pipeline.lake.lock import hold_in_java, table_lock
from strandline.pipeline.lake.options import Mode, ValueFormat, ValueSchema, read_values
from strandline.pipeline.locations import existing_table, is_local
from strandline.pipeline.runtime.session import LOCAL_MASTER, open_session

if TYPE_CHECKING:
    from strandline.pipeline.replay.job import ReplayResult
    from strandline.pipeline.runtime.session import SessionOptions

DeadLettersArgument = Annotated[
    str, typer.Argument(help="The table of dead letters.", metavar="DEAD_LETTERS")
]
IntoOption = Annotated[
    str, typer.Option("--into", help="The table that lake filled.", metavar="TABLE")
]


def replay(
    dead_letters: DeadLettersArgument,
    into: IntoOption,
    *,
    schema: SchemaOption = None,
    format_: FormatOption = None,
    registry: RegistryOption = None,
    subject: SubjectOption = None,
    message: MessageOption = None,
    mode: ModeOption = "strict",
    master: MasterOption = LOCAL_MASTER,
    jars: JarsOption = None,
    conf: ConfOption = None,
    as_json: JsonOption = False,
) -> None:
    """Move the dead letters that fit a schema into their table, each exactly once."""
    read = read_values(schema, ValueFormat(format_, registry, subject, message), mode)
    source, table = existing_table(dead_letters), existing_table(into)
    if source == table:
        raise OperatorError("--into: name another table than the one of the dead letters")
    session = session_options(f"replay {table}", master=master, jars=jars, conf=conf)
    with screen().status("starting Spark"):
        result = _replay(source, table, read, mode, session)
    if as_json:
        write_json(asdict(result))
        return
    for change in result.changes:
        write_line(f"{table}: {change}")
    if result.finished:
        write_line(f"{result.finished:,} dead letters of an earlier replay were in the table")
    late = f", {result.superseded:,} deleted since" if result.superseded else ""
    write_line(f"{result.replayed:,} records into {table}{late}; {result.left:,} still do not fit")


def _replay(
    source: str,
    table: str,
    schema: ValueSchema | None,
    mode: Mode,
    session: "SessionOptions",
) -> "ReplayResult":
    with ExitStack() as stack:
        locks = [
            stack.enter_context(table_lock(Path(each)))
            for each in (table, source)
            if is_local(each)
        ]
        spark = stack.enter_context(open_session(session))
        from strandline.pipeline.replay.job import Replay

        kept = [hold_in_java(spark, lock) for lock in locks]
        job = Replay(spark, dead_letters=source, table=table, schema=schema, mode=mode)
        result = job.run()
        del kept
        return result
