"""The history of the flights, when no broker's disk has it any more: read out of the buckets by the
cluster's own consumers, and by a second cluster that exchanges no packet with the first.

How:    the topic gets remote storage and a local retention of seconds. Once every leader's log
        begins where it ends, each byte that a consumer gets comes from a bucket; the brokers'
        counters prove it."""

import json
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from demo.cluster import (
    METRICS_PORT,
    READER_PORT_BASE,
    Cluster,
    DemoError,
    read_cluster,
    stop_cluster,
    strandline,
)
from demo.ledger import LedgerWriter, read_entries

LOCAL_RETENTION_MS = 2_000
SEGMENT_MS = 1_000
WAIT_S = 60.0
LOOK_S = 0.5
READ_RECORDS = 5_000
FETCHED, SERVED = "strandline_fetched_bytes_total", "strandline_remote_served_bytes_total"
"""Bytes of records in all responses to consumers, and those of them that came out of buckets."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class History:
    """What was read of the buckets. The arrays have ledger entries."""

    local_records: int
    """How many records the leaders' disks still had."""
    objects: int
    bucket_bytes: int
    fetched_bytes: int
    """That the brokers sent to the first cluster's consumer."""
    served_bytes: int
    """Those of them that came out of buckets."""
    read: numpy.ndarray
    copied: numpy.ndarray
    """By the second cluster's consumer."""


def tell_history(cluster: Cluster, topic: str, work: Path) -> History:
    """The whole act: disks let the records go, consumers of two clusters read them."""
    held = _let_go(cluster, topic)
    before = _counters(cluster)
    read = _read_all(cluster.bootstrap, topic, work / "history")
    fetched, served = (now - then for now, then in zip(_counters(cluster), before, strict=True))
    copied = _read_copy(cluster, topic, work)
    return History(*held, fetched_bytes=fetched, served_bytes=served, read=read, copied=copied)


def _let_go(cluster: Cluster, topic: str) -> tuple[int, int, int]:
    """Until every bucket has everything, and the leaders' logs are as short as they get: (records
    left there, objects, their bytes)."""
    strandline(
        *("topic", "alter", topic, "--bootstrap", cluster.bootstrap),
        *("-c", "remote.storage.enable=true", "-c", f"segment.ms={SEGMENT_MS}"),
        *("-c", f"local.retention.ms={LOCAL_RETENTION_MS}"),
    )

    def look() -> tuple[int, int, int] | None:
        told = json.loads(
            strandline("tiered", "status", topic, "--bootstrap", cluster.bootstrap, "--json")
        )
        rows = told["partitions"]
        buckets = [one for row in rows for one in row["buckets"]]
        left = sum(row["high_watermark"] - row["local_start_offset"] for row in rows)
        if not rows or not buckets or left:
            return None
        return left, sum(one["objects"] for one in buckets), sum(one["bytes"] for one in buckets)

    return _until(look, "the brokers' disks to let the flights go")


def _read_copy(cluster: Cluster, topic: str, work: Path) -> numpy.ndarray:
    """The same topic, served by a cluster that has the URL of one bucket and nothing else."""
    source, home = cluster.directory / "buckets" / cluster.regions[0], work / "reader"
    told = strandline(
        *("dev", "start", "--dir", str(home), "--regions", "north=1", "--json"),
        *("--port-base", str(READER_PORT_BASE), "--set", "tiered.export_interval_ms=1000"),
    )
    bootstrap = json.loads(told)["bootstrap"]
    try:
        strandline(
            *("topic", "create", topic, "--read-replica-of", f"file://{source}"),
            *("--bootstrap", bootstrap),
        )
        wanted = _ends(cluster.bootstrap, topic)
        _until(lambda: _ends(bootstrap, topic) == wanted or None, "the copy of the topic")
        return _read_all(bootstrap, topic, work / "copy")
    finally:
        stop_cluster(home)


def _read_all(bootstrap: str, topic: str, ledger: Path) -> numpy.ndarray:
    """Every record from the first to the last, as entries."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "history",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 2,
        }
    )
    ends = _ends(bootstrap, topic)
    consumer.assign([TopicPartition(topic, one, OFFSET_BEGINNING) for one in ends])
    missing = {number for number, end in ends.items() if end}
    deadline = time.monotonic() + WAIT_S
    with LedgerWriter(ledger) as writer:
        while missing and time.monotonic() < deadline:
            for message in consumer.consume(READ_RECORDS, timeout=LOOK_S):
                error = message.error()
                if error is None:
                    writer.add(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    missing.discard(message.partition() or 0)
    consumer.close()
    if missing:
        raise DemoError(f"partitions {sorted(missing)} were not read within {WAIT_S:.0f} s")
    return read_entries([ledger])


def _ends(bootstrap: str, topic: str) -> dict[int, int]:
    """{partition: its end}; empty while that is not known."""
    told = json.loads(
        strandline("topic", "describe", topic, "--bootstrap", bootstrap, "--json", codes=(0, 10))
    )
    return {one["partition"]: one["end_offset"] for one in told["topics"][0]["partitions"]}


def _counters(cluster: Cluster) -> tuple[int, int]:
    """FETCHED and SERVED, of all brokers together."""
    fetched = served = 0.0
    for number in read_cluster(cluster.directory).brokers:
        url = f"http://127.0.0.1:{METRICS_PORT + number - 1}/metrics"
        with urllib.request.urlopen(url, timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        fetched += sum(float(one.split()[-1]) for one in lines if one.startswith(FETCHED))
        served += sum(float(one.split()[-1]) for one in lines if one.startswith(SERVED))
    return int(fetched), int(served)


def _until(look: Callable[[], _T | None], what: str) -> _T:
    deadline = time.monotonic() + WAIT_S
    while (found := look()) is None:
        if time.monotonic() > deadline:
            raise DemoError(f"waited {WAIT_S:.0f} s in vain for {what}")
        time.sleep(LOOK_S)
    return found
