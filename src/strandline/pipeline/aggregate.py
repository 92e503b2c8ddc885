"""Means over a lake table, by group.

Why:    the smallest useful query, whose answer is easy to check by other means.
How:    one scan of the table's newest version; rows without the value do not count, as in SQL and
        pandas."""

from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as in all of Spark's documentation)

from strandline.pipeline.questions import MeanQuestion


@dataclass(frozen=True, slots=True)
class GroupMean:
    """The mean of one group. `mean` is None when no row of the group has a value."""

    group: tuple[str | None, ...]
    rows: int
    values: int
    mean: float | None


def mean_by(spark: SparkSession, table: str, question: MeanQuestion) -> list[GroupMean]:
    """The mean for each combination of the question's groups, ordered by group."""
    groups = [F.expr(text).cast("string").alias(f"g{n}") for n, text in enumerate(question.by)]
    measured = F.expr(question.of).cast("double")
    counted = (
        spark.read.format("delta")
        .load(table)
        .groupBy(*groups)
        .agg(F.count("*"), F.count(measured), F.avg(measured))
    )
    width = len(groups)
    found = [
        GroupMean(tuple(row[:width]), row[width], row[width + 1], row[width + 2])
        for row in counted.collect()
    ]
    return sorted(found, key=lambda mean: [(part is not None, part or "") for part in mean.group])
