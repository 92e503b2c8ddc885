"""How late a Spark stream is that reads records of a fixed rate by `strandline`, local[2].

Why:    a stream keeps up, or its lag grows without end; users ask how old a record is when its
        micro-batch is done.
How:    a thread sends batches of 1,000 records of 100 B, stamped with the time of sending. The
        query counts each micro-batch of a second. A record's lag is from its timestamp to the end
        of its micro-batch; records count as spread evenly between the first and last of it.
"""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.clusters import strandline
from bench.paced import create_topic
from bench.spark import PARTITIONS, BatchSender, session
from strandline.records.record import Record, build_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RATE, VALUE_BYTES, PER_BATCH = 200_000, 100, 1_000
SECONDS, WARM_UP_S = 40, 15
TRIGGER = "1 second"
Say = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Micro:
    """One micro-batch: its records, the times of its first and last one, and of its end, in s."""

    records: int
    first_s: float
    last_s: float
    done_s: float


class Load(threading.Thread):
    """Sends at the rate until it is stopped; `sent` counts records."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(daemon=True)
        self._sender = BatchSender(bootstrap, topic)
        self._values = [os.urandom(VALUE_BYTES) for _ in range(PER_BATCH)]
        self.ends = threading.Event()
        self.sent = 0

    def run(self) -> None:
        """See the class."""
        began = time.perf_counter()
        with self._sender as sender:
            while not self.ends.is_set():
                for partition in sender.partitions:
                    sender.send(partition, self._batch())
                    self.sent += PER_BATCH
                ahead_s = self.sent / RATE - (time.perf_counter() - began)
                self.ends.wait(max(ahead_s, 0))

    def _batch(self) -> bytes:
        now_ms = time.time_ns() // 1_000_000
        records = [Record(n, timestamp=now_ms, value=one) for n, one in enumerate(self._values)]
        return bytes(build_batch(records))


def note(found: list[Micro], frame: "DataFrame", _number: int) -> None:
    """What one micro-batch had; called by Spark."""
    from pyspark.sql import functions as F  # noqa: N812

    first, last = (each(F.col("timestamp").cast("double")) for each in (F.min, F.max))
    row = frame.agg(F.count("value"), first, last).head()
    if row is not None and row[0]:
        found.append(Micro(row[0], row[1], row[2], time.time()))


def percentile_s(found: list[Micro], part: float) -> float:
    """The lag that this part of all records stays below."""
    lags = []
    for one in found:
        for step in range(20):
            at_s = one.first_s + (one.last_s - one.first_s) * (step + 0.5) / 20
            lags.append((one.done_s - at_s, one.records / 20))
    lags.sort()
    left = part * sum(weight for _, weight in lags)
    for lag_s, weight in lags:
        left -= weight
        if left <= 0:
            return lag_s
    return lags[-1][0]


def run(work: Path, say: Say) -> None:
    """One stream, from the newest records on."""
    with strandline(work, regions="east=1") as cluster, session(work / "spark") as spark:
        create_topic(cluster.bootstrap, "paced", partitions=PARTITIONS, replicas=1)
        found: list[Micro] = []
        load = Load(cluster.bootstrap, "paced")
        frame = spark.readStream.format("strandline").option("subscribe", "paced")
        frame = frame.option("kafka.bootstrap.servers", cluster.bootstrap)
        query = (
            frame.load()
            .writeStream.foreachBatch(partial(note, found))
            .option("checkpointLocation", str(work / "checkpoint"))
            .trigger(processingTime=TRIGGER)
            .start()
        )
        load.start()
        time.sleep(WARM_UP_S)
        warm, sent = len(found), load.sent
        time.sleep(SECONDS)
        sent = load.sent - sent
        load.ends.set()
        load.join()
        query.stop()
        steady = found[warm:]
        say(
            sent_s=round(sent / SECONDS),
            read_s=round(sum(one.records for one in steady) / SECONDS),
            micro_batches=len(steady),
            lag_p50_s=round(percentile_s(steady, 0.5), 2),
            lag_p95_s=round(percentile_s(steady, 0.95), 2),
        )
