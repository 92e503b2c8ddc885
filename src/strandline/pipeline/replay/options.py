"""The options of a lake job, as far as the table that it filled tells them.

Why:    replayed rows must look like the job's own: same keys, same partition columns."""

from strandline.base.errors import OperatorError
from strandline.pipeline.lake.options import LakeOptions, Mode, PartitionColumn, ValueSchema
from strandline.pipeline.lake.progress import TableState


def options_of(
    table: str,
    state: TableState,
    *,
    dead_letters: str,
    schema: ValueSchema | None,
    mode: Mode,
) -> LakeOptions:
    """How the table's job decodes, but with another schema; OperatorError if no job filled it."""
    batch = state.batch
    if batch is None:
        raise OperatorError(f"{table} is not a lake table: name the table that the records miss")
    if batch.key not in ("text", "raw"):
        raise OperatorError(f"{table}: its log does not tell how keys are kept: run lake once")
    return LakeOptions(
        bootstrap="",
        topics=tuple(batch.topics),
        table=table,
        name=batch.job,
        schema=schema,
        mode=mode,
        key="text" if batch.key == "text" else "raw",
        partition_by=tuple(_partition_column(text) for text in batch.partition_by),
        dead_letters=dead_letters,
        upsert=batch.upsert,
    )


def _partition_column(text: str) -> PartitionColumn:
    name, _, expression = text.partition("=")
    return PartitionColumn(name, expression)
