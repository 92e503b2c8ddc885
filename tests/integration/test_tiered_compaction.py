"""A compacted topic in buckets: consumers of real clients get the last value of each key, over the
seam between bucket and disk, whatever is killed on the way.

Source: decision 0066."""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import NewTopic
from tests.integration.bucket_contents import log_files
from tests.integration.conftest import stop_cluster, wait_until
from tests.integration.test_tiered_uploads import (
    PARTITIONS,
    REGIONS,
    SEGMENT_BYTES,
    TIMEOUT_S,
    Tiered,
)
from tests.spark.task_clients import close_task_clients

from strandline.spark.reading.batch_reader import BatchReader
from strandline.spark.reading.options import parse_options

pytestmark = pytest.mark.integration

KEYS = 200
Table = dict[tuple[int, bytes], bytes]
"""{(partition, key): its last value}"""


@pytest.fixture
def tiered(tmp_path: Path) -> Iterator[Tiered]:
    made = Tiered(tmp_path, "tiered.delete_grace_ms=20000", "tiered.export_interval_ms=500")
    yield made
    close_task_clients()
    stop_cluster(made.cluster)


def create(tiered: Tiered, topic: str) -> None:
    config = {
        "remote.storage.enable": "true",
        "segment.bytes": str(SEGMENT_BYTES),
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.2",
        "local.retention.bytes": str(SEGMENT_BYTES),
    }
    made = tiered.admin.create_topics([NewTopic(topic, PARTITIONS, 3, config=config)])
    made[topic].result(TIMEOUT_S)


def fill(tiered: Tiered, topic: str, table: Table, count: int, rng: random.Random) -> None:
    """Values of 1 kB, and some deletions, all acknowledged."""
    failed: list[str] = []
    producer = Producer(
        {
            "bootstrap.servers": tiered.cluster.bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "log_level": 0,
        }
    )
    for at in range(count):
        partition, key = at % PARTITIONS, b"key-%d" % rng.randrange(KEYS)
        value = None if rng.random() < 0.05 else rng.randbytes(1_000)
        producer.produce(
            topic,
            key=key,
            value=value,
            partition=partition,
            on_delivery=lambda error, _: error and failed.append(str(error)),
        )
        if value is None:
            table.pop((partition, key), None)
        else:
            table[partition, key] = value
        producer.poll(0)
    assert producer.flush(TIMEOUT_S) == 0
    assert failed == []


def read(tiered: Tiered, topic: str) -> tuple[Table, int]:
    """(the table that a consumer from the beginning sees, how many records it got)."""
    consumer = Consumer(
        {
            "bootstrap.servers": tiered.cluster.bootstrap,
            "group.id": f"reader-{time.monotonic_ns()}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, one, 0) for one in range(PARTITIONS)])
    table: Table = {}
    last = dict.fromkeys(range(PARTITIONS), -1)
    ended: set[int] = set()
    count = 0
    deadline = time.monotonic() + TIMEOUT_S
    try:
        while len(ended) < PARTITIONS:
            assert time.monotonic() < deadline, last
            for message in consumer.consume(500, 1.0):
                partition, error = message.partition(), message.error()
                assert partition is not None
                if error is not None:
                    assert error.code() == KafkaError._PARTITION_EOF or error.retriable(), error
                    if error.code() == KafkaError._PARTITION_EOF:
                        ended.add(partition)
                    continue
                key, value, offset = message.key(), message.value(), message.offset()
                assert key is not None and offset is not None
                assert offset > last[partition], "an offset came twice"
                last[partition], count = offset, count + 1
                if value is None:
                    table.pop((partition, key), None)
                else:
                    table[partition, key] = value
    finally:
        consumer.close()
    return table, count


def kill_leader(tiered: Tiered, topic: str) -> None:
    """The leader's process is killed, and starts again once another broker leads."""
    leader = tiered.leader_of(topic)
    tiered.cluster.kill(leader)
    wait_until(lambda: tiered.leader_of(topic) not in (-1, leader), what="another leader")
    tiered.cluster.start(leader)


def start_of(tiered: Tiered, broker: int, topic: str, partition: int) -> int:
    return int(log_files(tiered.cluster.directory, broker, topic, partition)[0].name.split("-")[0])


def has_let_go(tiered: Tiered, topic: str, above: int) -> bool:
    return all(
        start_of(tiered, broker, topic, partition) > above
        for broker in (1, 2, 3)
        for partition in range(PARTITIONS)
    )


def size_of(tiered: Tiered, region: str) -> int:
    found = tiered.buckets[region].rglob("*.segment")
    return sum(one.stat().st_size for one in found if one.exists())


def test_a_consumer_gets_the_last_value_of_each_key(tiered: Tiered) -> None:
    rng, table = random.Random(1), Table()
    create(tiered, "t")
    total = 12_000
    for round_ in range(3):
        fill(tiered, "t", table, total // 3, rng)
        if round_ == 1:
            kill_leader(tiered, "t")
    wait_until(lambda: has_let_go(tiered, "t", 3_000), what="disks let go", timeout_s=TIMEOUT_S)
    wait_until(
        lambda: all(size_of(tiered, one) < total * 1_000 // 4 for one in REGIONS),
        what="every bucket has little more than the last values",
        timeout_s=TIMEOUT_S,
    )
    found, count = read(tiered, "t")
    assert found == table
    assert count < total // 2
    for source in ("auto", "broker"):
        assert by_spark(tiered, "t", source) == table
    assert len(by_spark(tiered, "t", "bucket")) > len(table) * 9 // 10


def by_spark(tiered: Tiered, topic: str, source: str) -> Table:
    """The table that a batch of the Spark source makes; of `bucket` up to where buckets end."""
    options = {
        "kafka.bootstrap.servers": tiered.cluster.bootstrap,
        "subscribe": topic,
        "minPartitions": "7",
        "readFrom": source,
        "buckets": ",".join(f"{name}=file://{path}" for name, path in tiered.buckets.items()),
    }
    reader = BatchReader(parse_options(options), ("partition", "offset", "key", "value"))
    rows = [
        row
        for split in reader.partitions()
        for batch in reader.read(split)
        for row in batch.to_pylist()
    ]
    places = [(row["partition"], row["offset"]) for row in rows]
    assert len(set(places)) == len(places)
    table: Table = {}
    for row in sorted(rows, key=lambda one: (one["partition"], one["offset"])):
        if row["value"] is None:
            table.pop((row["partition"], row["key"]), None)
        else:
            table[row["partition"], row["key"]] = row["value"]
    return table
