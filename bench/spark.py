"""Spark reads a topic by its Kafka connector and by `strandline`, in the same session: records a
second of both, and their ratio.

Why:    a reader's speed means something only beside the other's, on the same machine and cluster.
How:    topics are filled with the same batch again and again. Each question is asked by both
        sources in turn, ROUNDS times, and the best time of each counts: the first rounds warm up
        Java, Python workers and the brokers' page cache. CPU seconds are those of Java, of its
        Python workers and of the brokers together: on a machine that has other work, their ratio
        says more than that of the times.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.clusters import Cluster, has_kafka, kafka, strandline
from bench.paced import create_topic
from strandline.client.cluster import Client
from strandline.client.wire.connection import Connection
from strandline.config.addresses import parse_bootstrap
from strandline.pipeline.runtime.jars import default_directory, ensure_jars
from strandline.pipeline.runtime.java import find_java
from strandline.pipeline.runtime.resolvers import default_resolvers
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.records.record import Record, build_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONS = 4
RECORDS = {100: 5_000_000, 1_000: 1_000_000}
"""{bytes of a value: how many records}"""
ROUNDS = 3
BATCH_BYTES = 100_000
IN_FLIGHT = 8
TIMEOUT_MS = 60_000
SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "2g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
Say = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Question:
    """What a query asks of each record. `ours`: options of `strandline` for the same answer."""

    name: str
    ask: Callable[["DataFrame", Path], object]
    ours: dict[str, str]


@dataclass(frozen=True, slots=True)
class Cost:
    """What one query took."""

    wall_s: float
    cpu_s: float


def _to_parquet(frame: "DataFrame", directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    frame.write.parquet(str(directory))


QUESTIONS = (
    Question("noop", lambda frame, _: frame.write.format("noop").mode("append").save(), {}),
    Question("parquet", _to_parquet, {}),
    Question("count", lambda frame, _: frame.count(), {"columns": "offset"}),
)


def fill(
    bootstrap: str,
    topic: str,
    *,
    value_bytes: int,
    count: int,
    value_of: Callable[[int], bytes] | None = None,
) -> None:
    """Put `count` records into a topic of PARTITIONS partitions, the same ones in each batch.
    `value_of`: the value of each record of a batch, about `value_bytes` long; default: random."""
    per_batch = BATCH_BYTES // value_bytes
    now_ms = time.time_ns() // 1_000_000  # Retention would delete older records.
    records = [
        Record(
            n,
            timestamp=now_ms + n,
            key=b"%08d" % n,
            value=os.urandom(value_bytes) if value_of is None else value_of(n),
        )
        for n in range(per_batch)
    ]
    batch = bytes(build_batch(records))
    rounds = count // per_batch // PARTITIONS
    with BatchSender(bootstrap, topic) as sender:
        for _ in range(rounds):
            for partition in sender.partitions:
                sender.send(partition, batch)


class BatchSender:
    """Sends batches to a topic's leaders, IN_FLIGHT unanswered ones to each partition."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._client = Client(parse_bootstrap(bootstrap), timeout_ms=TIMEOUT_MS)
        until = self._client.deadline()
        leaders = self._client.leaders(topic, deadline_ms=until)
        self._connections = {
            partition: self._client.open_connection(leader, until)
            for partition, leader in leaders.items()
        }

    @property
    def partitions(self) -> list[int]:
        """All of the topic."""
        return sorted(self._connections)

    def send(self, partition: int, batch: bytes) -> None:
        """Waits while too many are unanswered; fails if one was refused."""
        connection = self._connections[partition]
        if connection.due_count >= IN_FLIGHT:
            self._receive(connection)
        connection.send(_produce(self._topic, partition, batch), TIMEOUT_MS)

    def _receive(self, connection: Connection) -> None:
        answer = connection.receive(ProduceResponse, TIMEOUT_MS)
        (result,) = answer.responses[0].partition_responses
        assert not result.error_code, result

    def __enter__(self) -> "BatchSender":
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._connections.values():
            while connection.due_count:
                self._receive(connection)
            connection.close()
        self._client.close()


def _produce(topic: str, partition: int, batch: bytes) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=batch)
    topics = [TopicProduceData(name=topic, partition_data=[data])]
    return ProduceRequest(acks=-1, timeout_ms=TIMEOUT_MS, topic_data=topics)


@contextmanager
def session(scratch: Path) -> Iterator["SparkSession"]:
    """A Spark session of two cores with both sources."""
    from pyspark.sql import SparkSession

    java = find_java()
    os.environ |= {"JAVA_HOME": str(java.home), "SPARK_LOCAL_IP": "127.0.0.1"}
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_DIRS": str(scratch)}
    jars = ensure_jars(default_directory(), default_resolvers(java))
    builder = SparkSession.builder.config("spark.jars", ",".join(map(str, jars)))
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


def measure(cluster: Cluster, say: Say, scratch: Path) -> None:
    """Every question, by both sources, of records of each size."""
    for value_bytes, count in RECORDS.items():
        topic = f"spark-{value_bytes}"
        create_topic(cluster.bootstrap, topic, partitions=PARTITIONS, replicas=1)
        fill(cluster.bootstrap, topic, value_bytes=value_bytes, count=count)
    with session(scratch / "spark") as spark:
        for value_bytes, count in RECORDS.items():
            for question in QUESTIONS:
                ways = {"kafka": {}, "strandline": question.ours}
                best = compare(spark, cluster, (f"spark-{value_bytes}", ways), question, scratch)
                say(
                    question=question.name,
                    system=cluster.name,
                    value_bytes=value_bytes,
                    records=count,
                    connector_s=round(best["kafka"].wall_s, 2),
                    strandline_s=round(best["strandline"].wall_s, 2),
                    strandline_records_s=round(count / best["strandline"].wall_s),
                    ratio=round(best["kafka"].wall_s / best["strandline"].wall_s, 2),
                    connector_cpu_s=round(best["kafka"].cpu_s, 2),
                    strandline_cpu_s=round(best["strandline"].cpu_s, 2),
                    cpu_ratio=round(best["kafka"].cpu_s / best["strandline"].cpu_s, 2),
                )


def compare(
    spark: "SparkSession",
    cluster: Cluster,
    read_as: tuple[str, dict[str, dict[str, str]]],
    question: Question,
    scratch: Path,
) -> dict[str, Cost]:
    """{way: the least that one round took, of time and of CPU}. `read_as`: the topic, and {way: its
    options}; the way `kafka` is the connector, all others are `strandline`."""
    topic, ways = read_as
    best: dict[str, Cost] = {}
    for _ in range(ROUNDS):
        for name, options in ways.items():
            read = spark.read.format("kafka" if name == "kafka" else "strandline")
            read = read.option("subscribe", topic).options(**options)
            read = read.option("kafka.bootstrap.servers", cluster.bootstrap)
            began, before_s = time.perf_counter(), cpu_s(cluster)
            question.ask(read.load(), scratch / "table")
            took = Cost(time.perf_counter() - began, cpu_s(cluster) - before_s)
            known = best.get(name, took)
            best[name] = Cost(min(known.wall_s, took.wall_s), min(known.cpu_s, took.cpu_s))
    return best


def cpu_s(cluster: Cluster) -> float:
    """CPU seconds so far of the brokers and of all that this process has started."""
    ticks = 0
    for pid in {*cluster.pids.values(), *_descendants(os.getpid())}:
        try:
            fields = _stat_of(pid)
        except OSError:
            continue  # It has ended.
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _descendants(parent: int) -> set[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                children.setdefault(int(_stat_of(int(entry.name))[1]), []).append(int(entry.name))
            except OSError:
                continue
    found, left = set[int](), [parent]
    while left:
        new = children.get(left.pop(), [])
        found.update(new)
        left += new
    return found


def _stat_of(pid: int) -> list[str]:
    """The fields of a process after its name: state, parent, ..., user and system ticks."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def run(work: Path, say: Say) -> None:
    """One broker of Strandline's, then one of Apache Kafka's."""
    with strandline(work / "strandline", regions="east=1") as cluster:
        measure(cluster, say, work)
    if has_kafka():
        with kafka(work / "kafka", brokers=1) as cluster:
            measure(cluster, say, work)
