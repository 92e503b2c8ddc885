"""Has the workers of a session read a batch and write its files.

Why:    only Spark knows where workers are; the rest of this package runs in them.
How:    a task for each group of splits, which gives the `add` actions of its files."""

import json
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession

from strandline.pipeline.lake.direct.files import UNFIT, FileOptions, write_groups
from strandline.pipeline.lake.direct.table_rows import table_rows
from strandline.pipeline.lake.options import LakeOptions
from strandline.pipeline.lake.progress import Batch
from strandline.pipeline.lake.source import group_reader, groups_of, reader_options
from strandline.spark.reading.options import parse_options


def write_files(
    spark: SparkSession, batch: Batch, options: LakeOptions, files: FileOptions, *, tasks: int
) -> list[str] | None:
    """`add` actions of all files of a batch, as JSON; None if a value needs Spark's writer."""
    reach = parse_options(reader_options(batch, options)).reach
    read = group_reader(groups_of(batch, reach, tasks), reach, options)
    work = write_groups(read, table_rows(options, files.schema), files)
    # A data frame would make Java load all of Spark SQL for a list of numbers.
    actions = spark.sparkContext.parallelize(range(tasks), tasks).flatMap(work).collect()
    if UNFIT not in actions:
        return actions
    for action in actions:
        if action != UNFIT:
            with suppress(OSError):
                (Path(options.table) / json.loads(action)["add"]["path"]).unlink()
    return None
