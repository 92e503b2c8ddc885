"""Pipeline commands as processes, and independent readings of topics and tables to hold them to."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pyarrow.parquet
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.conftest import wait_until

from strandline.pipeline.lake.table import read_table
from strandline.pipeline.runtime.java import Java

JOB_TIMEOUT_S = 300
CLIENT_TIMEOUT_S = 60
STARTS_MAX = 5
SLOW_WORKER = "Python worker failed to connect back"
"""Spark gives the worker of a stream 10 s to start, whatever its settings."""
KEPT = {"retention.ms": "-1"}
"""The configuration of a topic that keeps records of any age: some tests write old ones."""

T = TypeVar("T")


@dataclass(frozen=True)
class Cluster:
    """Any Kafka-compatible cluster."""

    bootstrap: str


@dataclass(frozen=True)
class Record:
    """One record, to be produced or as it was read; `timestamp_ms` is the broker's answer."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = -1


Place = tuple[int, int]
"""Partition and offset."""


@dataclass(frozen=True)
class Jobs:
    """Starts `strandline pipeline` commands."""

    cluster: Cluster
    java: Java
    jars: tuple[Path, ...]
    scratch: Path
    """Where killed jobs leave what they could not remove."""

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "JAVA_HOME": str(self.java.home),
            "STRANDLINE_JARS": str(self.jars[0].parent),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self.scratch),
            "TMPDIR": str(self.scratch),
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """A command in a process group of its own, the Java machine included."""
        return subprocess.Popen(
            [sys.executable, "-m", "strandline.pipeline", *arguments],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, fails: bool = False) -> str:
        """Standard output of a command that succeeds, standard error of one that `fails`."""
        with self.start(*arguments) as process:
            try:
                out, err = process.communicate(timeout=JOB_TIMEOUT_S)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        assert (process.returncode != 0) == fails, f"{arguments}: {out}\n{err}"
        return err if fails else out

    def run_until_killed(self, file: Path, *arguments: str, with_java: bool) -> None:
        """SIGKILL as soon as the job has made `file`; without Java the driver alone is killed."""
        with self.start(*arguments) as process:
            try:
                wait_until(
                    lambda: file.exists() or process.poll() is not None,
                    what=f"{file} appears",
                    timeout_s=JOB_TIMEOUT_S,
                )
                assert process.poll() is None, process.communicate()
                if not with_java:
                    java = children(process.pid)
                    process.kill()
                    process.wait()
                    # It notices that its driver is gone, and must do no harm until then.
                    wait_until(
                        lambda: not any(Path(f"/proc/{pid}").exists() for pid in java),
                        what="Java ends by itself",
                        timeout_s=CLIENT_TIMEOUT_S,
                    )
            finally:
                _kill_group(process.pid)
                process.communicate()


def started_again(attempt: Callable[[], T]) -> T:
    """What the attempt at a stream returns. One whose Python worker did not start in Spark's time
    is started again, as a user would; raises all other errors."""
    from pyspark.errors import PySparkException

    for _ in range(STARTS_MAX - 1):
        try:
            return attempt()
        except PySparkException as error:
            if SLOW_WORKER not in str(error):
                raise
    return attempt()


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def create_topic(cluster: Cluster, name: str, *, partitions: int) -> None:
    """A topic with as many replicas as there are brokers, three at most; it keeps records of any
    age."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    replicas = min(3, len(admin.list_topics(timeout=CLIENT_TIMEOUT_S).brokers))
    created = admin.create_topics([NewTopic(name, partitions, replicas, config=KEPT)])
    created[name].result(CLIENT_TIMEOUT_S)


def produce(cluster: Cluster, topic: str, records: Iterable[Record]) -> None:
    """All records acknowledged by all replicas."""
    failures: list[object] = []
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "acks": "all", "enable.idempotence": True}
    )

    def on_delivery(error: object, _message: object) -> None:
        if error is not None:
            failures.append(error)

    for record in records:
        producer.produce(
            topic,
            value=record.value,
            key=record.key,
            headers=list(record.headers),
            on_delivery=on_delivery,
        )
        producer.poll(0)
    assert producer.flush(CLIENT_TIMEOUT_S) == 0
    assert not failures


def read_topic(cluster: Cluster, topic: str) -> dict[Place, Record]:
    """Every record of the topic, by another client than Spark's."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": False,
        }
    )
    try:
        metadata = consumer.list_topics(topic, timeout=CLIENT_TIMEOUT_S)
        places = [TopicPartition(topic, n, 0) for n in metadata.topics[topic].partitions]
        ends = {
            place.partition: consumer.get_watermark_offsets(place, timeout=CLIENT_TIMEOUT_S)[1]
            for place in places
        }
        consumer.assign(places)
        found: dict[Place, Record] = {}
        deadline = time.monotonic() + CLIENT_TIMEOUT_S
        while len(found) < sum(ends.values()):
            assert time.monotonic() < deadline, f"only {len(found)} of {ends}"
            for message in consumer.consume(10_000, timeout=0.5):
                assert message.error() is None, message.error()
                found[message.partition(), message.offset()] = Record(
                    message.key(),
                    message.value(),
                    tuple(message.headers() or ()),
                    message.timestamp()[1],
                )
        return found
    finally:
        consumer.close()


def read_rows(table: Path) -> list[Mapping[str, object]]:
    """Every row of a table by pyarrow; partition columns as text."""
    return [
        {**row, **file.partition}
        for file in read_table(table).files
        for row in pyarrow.parquet.ParquetFile(file.path).read().to_pylist()
    ]


def read_json(text: str) -> dict[str, object]:
    """The object that `--json` prints as the last line; spark-submit mixes progress before it."""
    told = json.loads(text.splitlines()[-1])
    assert isinstance(told, dict)
    return told
