"""A lost cluster's history brought back, by copying its objects and by producing its records.

Why:    a restore is as long as the outage that it ends.
How:    `python -m bench.run restore`: a broker with a directory for a bucket gets a topic of eight
        partitions, whose segments are uploaded and exported; then it is removed. Two other clusters
        of one broker get the topic: with `--to` and with `--records`. Counted are the seconds of
        the command, and the CPU seconds of the command and of the broker, until the last record can
        be read. The bucket is a directory on the same disk, so that a copy reads and writes it.
Source: decision 0067."""

import json
import os
import resource
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.alone import Say
from bench.clusters import Cluster, command, strandline
from bench.load import cpu_seconds
from bench.paced import create_topic

TOPIC = "history"
PARTITIONS = 8
RECORD_BYTES = 1_000
RECORDS = 1_000_000
SEGMENT_BYTES = 16 << 20
OPTIONS = ("--tiered", "--set", "tiered.export_interval_ms=1000")
TIMEOUT_S = 600
POLL_S = 1


def run(work: Path, say: Say) -> None:
    """Make the history once, and bring it back both ways."""
    with strandline(work / "lost", regions="east=1", options=OPTIONS) as lost:
        _fill(lost)
        url = f"file://{work / 'lost/buckets/east'}"
        size = _wait_exported(url)
    for way in ("objects", "records"):
        with strandline(work / way, regions="east=1", options=OPTIONS) as cluster:
            config = work / way / "broker-1/config.toml"
            how = ("--to", str(config)) if way == "objects" else ("--records",)
            _restore(cluster, say, url, way, how, size)


def _fill(cluster: Cluster) -> None:
    configs = {
        "remote.storage.enable": "true",
        "segment.bytes": str(SEGMENT_BYTES),
        "segment.ms": "5000",
        "local.retention.bytes": str(SEGMENT_BYTES),
    }
    create_topic(cluster.bootstrap, TOPIC, partitions=PARTITIONS, replicas=1, configs=configs)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 20})
    value = os.urandom(RECORD_BYTES)
    for number in range(RECORDS):
        while True:
            try:
                producer.produce(TOPIC, value=value, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(TIMEOUT_S) == 0


def _planned(url: str) -> list[dict[str, int]]:
    told = json.loads(command("restore", "--from", url, "--dry-run", "--json"))
    return [part for topic in told["topics"] for part in topic["partitions"]]


def _wait_exported(url: str) -> int:
    """Until the bucket has most of it, and says so; how many bytes."""
    deadline = time.monotonic() + TIMEOUT_S
    before = -1
    while True:
        time.sleep(POLL_S * 10)
        try:
            size = sum(part["size_bytes"] for part in _planned(url))
        except Exception:
            size = 0
        if size and size == before and size >= RECORDS * RECORD_BYTES * 0.8:
            return size
        assert time.monotonic() < deadline, f"{size} bytes are in the bucket"
        before = size


def _restore(
    cluster: Cluster, say: Say, url: str, way: str, how: tuple[str, ...], size: int
) -> None:
    pids = list(cluster.pids.values())
    broker_s, client_s = cpu_seconds(pids), _children_s()
    begin = time.monotonic()
    command("restore", "--from", url, *how, "-b", cluster.bootstrap)
    seconds, client_s = time.monotonic() - begin, _children_s() - client_s
    for part in _planned(url):
        _read_last(cluster, part["index"], part["end_offset"])
    gigabytes = size / 1e9
    say(
        way=way,
        gigabytes=round(gigabytes, 2),
        seconds=round(seconds, 1),
        command_cpu_s_per_gb=round(client_s / gigabytes, 2),
        broker_cpu_s_per_gb=round((cpu_seconds(pids) - broker_s) / gigabytes, 2),
    )


def _children_s() -> float:
    """CPU seconds of commands that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _read_last(cluster: Cluster, partition: int, end: int) -> None:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "bench"})
    consumer.assign([TopicPartition(TOPIC, partition, end - 1)])
    (message,) = consumer.consume(1, timeout=TIMEOUT_S)
    assert message.error() is None and message.offset() == end - 1
    consumer.close()
