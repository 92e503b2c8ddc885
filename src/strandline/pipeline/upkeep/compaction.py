"""Decides which partitions of a table are worth compacting, and names them in SQL.

Why:    compaction writes rows again; only partitions that gained many small files pay for it.
How:    {partition: its small files} -> predicates over the partition columns. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

PREDICATE_PARTITIONS_MAX = 200
"""Partitions in one OPTIMIZE statement, and so in one commit."""

PartitionValues = tuple[str | None, ...]
"""The values of the partition columns, in their order, as Delta's log has them: text or null."""


@dataclass(frozen=True, slots=True)
class SmallFiles:
    """The small files of one partition of a table."""

    partition: PartitionValues
    count: int
    bytes: int


def worth_compacting(found: Sequence[SmallFiles], *, small_files: int) -> list[SmallFiles]:
    """Those with at least `small_files` small files, the fullest first."""
    chosen = [each for each in found if each.count >= small_files]
    return sorted(chosen, key=lambda each: each.count, reverse=True)


def predicates(chosen: Sequence[SmallFiles], types: Mapping[str, str]) -> Iterator[str]:
    """One predicate for each OPTIMIZE statement; "" for a table without partitions. `types`:
    {partition column: its SQL type}, in order."""
    if not types:
        if chosen:
            yield ""
        return
    for first in range(0, len(chosen), PREDICATE_PARTITIONS_MAX):
        some = chosen[first : first + PREDICATE_PARTITIONS_MAX]
        yield " OR ".join(f"({_predicate(each.partition, types)})" for each in some)


def _predicate(values: PartitionValues, types: Mapping[str, str]) -> str:
    return " AND ".join(
        _equals(column, sql_type, value)
        for (column, sql_type), value in zip(types.items(), values, strict=True)
    )


def _equals(column: str, sql_type: str, value: str | None) -> str:
    name = "`" + column.replace("`", "``") + "`"
    if value is None:
        return f"{name} IS NULL"
    text = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"{name} = CAST('{text}' AS {sql_type})"
