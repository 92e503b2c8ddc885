"""The Spark jobs, run by the command line, and what they wrote, read without Spark."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import pyarrow.parquet

from demo.cluster import STRANDLINE, Cluster, DemoError, complaint
from demo.flights import SCHEMA
from demo.ledger import ENTRY
from demo.producer import TOPIC
from strandline.pipeline.lake.table import read_table

JOB_TIMEOUT_S = 400


@dataclass(frozen=True, slots=True)
class Filled:
    """What the job tells of the table that it filled."""

    rows: int
    files: int
    mean_delays: dict[str, float]
    """Mean arrival delay by carrier, counted by Spark over the table."""


def fill_lake(cluster: Cluster, table: Path, *, scratch: Path) -> Filled:
    """The topic into a table, partitioned by carrier, and the mean delays from the table."""
    told = _run_job(
        *("lake", TOPIC, str(table), "--bootstrap", cluster.bootstrap, "--schema", str(SCHEMA)),
        *("--key", "text", "--partition-by", "carrier"),
        *("--by", "carrier", "--mean", "value.arr_delay", "--json"),
        scratch=scratch,
    )
    delays = {group["group"][0]: group["mean"] for group in told["groups"]}
    return Filled(told["table_rows"], told["table_files"], delays)


def read_places(table: Path) -> numpy.ndarray:
    """(partition, offset, flight) of every row, by another reader than Spark."""
    columns = ["partition", "offset", "key"]
    parts = []
    for file in read_table(table).files:
        rows = pyarrow.parquet.ParquetFile(file.path).read(columns)
        part = numpy.zeros(len(rows), ENTRY)
        part["partition"] = rows["partition"].to_numpy()
        part["offset"] = rows["offset"].to_numpy()
        part["flight"] = rows["key"].cast("int64").to_numpy()
        parts.append(part)
    return numpy.concatenate(parts) if parts else numpy.zeros(0, ENTRY)


def _run_job(*arguments: str, scratch: Path) -> dict[str, Any]:
    scratch.mkdir()
    with _job(*arguments, scratch=scratch) as process:
        try:
            out, err = process.communicate(timeout=JOB_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise DemoError(f"pipeline {arguments[0]}: no end within {JOB_TIMEOUT_S} s") from None
    if process.returncode != 0:
        raise DemoError(f"pipeline {arguments[0]}: {complaint(err)}")
    told = json.loads(out)
    assert isinstance(told, dict)
    return told


@contextmanager
def _job(*arguments: str, scratch: Path) -> Iterator[subprocess.Popen[str]]:
    """A process group that is gone at the end, the Java machine included."""
    process = subprocess.Popen(
        [STRANDLINE, "pipeline", *arguments],
        env={**os.environ, "TMPDIR": str(scratch), "SPARK_LOCAL_DIRS": str(scratch)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
