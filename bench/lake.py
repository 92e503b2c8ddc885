"""How many rows a second a lake job writes, as a process from its start to its end, local[2].

Why:    users start a job from cron and wait for all of it: the start of Spark, too.
How:    a topic of random bytes, and one of JSON with four fields, each into a new table.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.clusters import strandline
from bench.paced import create_topic
from bench.spark import PARTITIONS, fill

RECORDS, VALUE_BYTES = 2_000_000, 100
SCHEMA = "id BIGINT, carrier STRING, delay DOUBLE, distance INT"
TIMEOUT_S = 600
Say = Callable[..., None]


def json_value(n: int) -> bytes:
    """A record of four fields, about 100 bytes."""
    fields = {"id": 10**15 + n, "carrier": f"carrier {n % 16:02}", "delay": n / 4, "distance": n}
    return json.dumps(fields).encode()


def job(topic: str, table: Path, bootstrap: str, *options: str) -> tuple[int, float]:
    """Rows and seconds of one job."""
    command = [sys.executable, "-m", "strandline.pipeline", "lake", topic, str(table)]
    command += ["--bootstrap", bootstrap, "--master", "local[2]", "--json", *options]
    began = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
    return json.loads(done.stdout.splitlines()[-1])["table_rows"], time.perf_counter() - began


def run(work: Path, say: Say) -> None:
    """Both topics, once each."""
    schema = work / "four.ddl"
    with strandline(work, regions="east=1") as cluster:
        schema.write_text(SCHEMA)
        shapes: tuple[tuple[str, Callable[[int], bytes] | None, tuple[str, ...]], ...] = (
            ("bytes", None, ()),
            ("four-fields", json_value, ("--schema", str(schema))),
        )
        for name, value_of, options in shapes:
            create_topic(cluster.bootstrap, name, partitions=PARTITIONS, replicas=1)
            fill(
                cluster.bootstrap,
                name,
                value_bytes=VALUE_BYTES,
                count=RECORDS,
                value_of=value_of,
            )
            rows, took_s = job(name, work / f"table-{name}", cluster.bootstrap, *options)
            say(
                values=name,
                rows=rows,
                seconds=round(took_s, 1),
                rows_s=round(rows / took_s),
            )
