"""A topic of one cluster, served by another out of the bucket alone, to clients as they are.

Source: decision 0061; docs/operating/read-replicas.md."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewPartitions, OffsetSpec
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaTopicPartition
from tests.integration.conftest import DevCluster, run, start_cluster, stop_cluster, wait_until

from strandline.tiered.objects.directory import MARK

pytestmark = pytest.mark.integration

TOPIC = "flights"
PARTITIONS = 2
QUICK = (
    "--set", "tiered.check_interval_ms=100",
    "--set", "tiered.export_interval_ms=200",
    "--set", "storage.retention_check_interval_ms=200",
)  # fmt: skip
SOURCE_CONFIG = (
    "remote.storage.enable=true", "segment.ms=500", "segment.bytes=1048576",
    "internal.segment.bytes=20000", "local.retention.ms=1", "retention.ms=-1",
)  # fmt: skip
TIMEOUT_S = 60


class Read(NamedTuple):
    """One record as a client sees it."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


class Clusters(NamedTuple):
    """The source, with one bucket, and a cluster without any."""

    source: DevCluster
    copy: DevCluster

    @property
    def url(self) -> str:
        return f"file://{self.source.directory}/buckets/east"


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    with two_clusters(tmp_path_factory.mktemp("clusters")) as made:
        create_source(made.source, TOPIC)
        produce(made.source, TOPIC, 0, 1_000)
        create_copy(made, TOPIC)
        until_copied(made, TOPIC)
        yield made


@contextmanager
def two_clusters(directory: Path) -> Iterator[Clusters]:
    source = start_cluster(directory / "a", regions="east=1", options=("--tiered", *QUICK))
    try:
        copy = start_cluster(directory / "b", regions="west=3", options=QUICK)
        try:
            yield Clusters(source, copy)
        finally:
            stop_cluster(copy)
    finally:
        stop_cluster(source)


def until_copied(clusters: Clusters, topic: str) -> None:
    """Wait until the copy ends where the source does."""

    def is_copied() -> bool:
        found = ends(clusters.source, topic)
        return bool(found) and ends(clusters.copy, topic) == found

    wait_until(is_copied, what="all is copied")


def create_source(cluster: DevCluster, topic: str) -> None:
    configs = [part for one in SOURCE_CONFIG for part in ("-c", one)]
    run("topic", "create", topic, "-p", str(PARTITIONS), *configs, "-b", cluster.bootstrap)


def create_copy(clusters: Clusters, topic: str, of: str = "") -> None:
    """Create the copy as soon as the source has exported anything."""
    url = clusters.url + (f"#{of}" if of else "")
    arguments = ("topic", "create", topic, "-r", "3", "--read-replica-of", url)

    def created() -> bool:
        done = run(*arguments, "-b", clusters.copy.bootstrap, check=False)
        assert done.returncode == 0 or "has no" in done.stderr, done.stderr
        return done.returncode == 0

    wait_until(created, what="the source's first export")


def produce(cluster: DevCluster, topic: str, first: int, end: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 5})
    for number in range(first, end):
        producer.produce(
            topic,
            key=str(number % 7),
            value=str(number).encode().ljust(100, b"."),
            partition=number % PARTITIONS,
            timestamp=1_700_000_000_000 + 1_000 * number,
            headers=[("n", str(number).encode())],
        )
    assert producer.flush(TIMEOUT_S) == 0


def ends(cluster: DevCluster, topic: str) -> list[int]:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "ends"})
    try:
        return [
            consumer.get_watermark_offsets(TopicPartition(topic, one), timeout=TIMEOUT_S)[1]
            for one in range(PARTITIONS)
        ]
    except KafkaException:
        return []
    finally:
        consumer.close()


# ---- three clients -----------------------------------------------------------------------------


def by_confluent(bootstrap: str, topic: str, count: int) -> list[Read]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "g", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, one, 0) for one in range(PARTITIONS)])
    found: list[Read] = []
    for _ in range(10 * TIMEOUT_S):
        for one in consumer.consume(500, timeout=0.1):
            assert one.error() is None, one.error()
            headers = tuple(one.headers() or ())
            found.append(
                Read(
                    one.partition(), one.offset(), one.timestamp()[1], one.key(), one.value(),
                    headers,
                )
            )  # fmt: skip
        if len(found) >= count:
            break
    consumer.close()
    return sorted(found)


def by_kafka_python(bootstrap: str, topic: str, count: int) -> list[Read]:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, consumer_timeout_ms=1_000 * TIMEOUT_S)
    partitions = [KafkaTopicPartition(topic, one) for one in range(PARTITIONS)]
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    found: list[Read] = []
    for one in consumer:
        headers = tuple(one.headers)
        found.append(Read(one.partition, one.offset, one.timestamp, one.key, one.value, headers))
        if len(found) >= count:
            break
    consumer.close()
    return sorted(found)


def by_aiokafka(bootstrap: str, topic: str, count: int) -> list[Read]:
    async def read() -> list[Read]:
        from aiokafka import AIOKafkaConsumer
        from aiokafka import TopicPartition as AioTopicPartition

        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap)
        await consumer.start()
        found: list[Read] = []
        try:
            partitions = [AioTopicPartition(topic, one) for one in range(PARTITIONS)]
            consumer.assign(partitions)
            await consumer.seek_to_beginning(*partitions)
            async with asyncio.timeout(TIMEOUT_S):
                while len(found) < count:
                    for some in (await consumer.getmany(timeout_ms=500)).values():
                        found += [
                            Read(
                                one.partition, one.offset, one.timestamp, one.key, one.value,
                                tuple(one.headers),
                            )
                            for one in some
                        ]  # fmt: skip
        finally:
            await consumer.stop()
        return sorted(found)

    return asyncio.run(read())


READERS: tuple[Callable[[str, str, int], list[Read]], ...] = (
    by_confluent,
    by_kafka_python,
    by_aiokafka,
)


@pytest.mark.parametrize("read", READERS)
def test_clients_read_from_the_copy_what_the_source_has(
    clusters: Clusters, read: Callable[[str, str, int], list[Read]]
) -> None:
    count = sum(ends(clusters.source, TOPIC))
    at_source = by_confluent(clusters.source.bootstrap, TOPIC, count)
    assert len(at_source) == count >= 1_000
    assert read(clusters.copy.bootstrap, TOPIC, count) == at_source


def test_times_and_ends_of_the_copy_are_those_of_the_source(clusters: Clusters) -> None:
    wanted = [TopicPartition(TOPIC, one, 1_700_000_000_000 + 500_000) for one in range(PARTITIONS)]
    found = []
    for cluster in (clusters.source, clusters.copy):
        consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "times"})
        by_time = consumer.offsets_for_times(wanted, timeout=TIMEOUT_S)
        marks = [
            consumer.get_watermark_offsets(TopicPartition(TOPIC, one), timeout=TIMEOUT_S)
            for one in range(PARTITIONS)
        ]
        found.append(([(one.partition, one.offset) for one in by_time], marks))
        consumer.close()
    assert found[0] == found[1]
    assert [offset for _, offset in found[0][0]] == [250, 250]


def test_a_group_commits_offsets_and_its_lag_is_told(clusters: Clusters) -> None:
    count = sum(ends(clusters.copy, TOPIC))
    config = {
        "bootstrap.servers": clusters.copy.bootstrap,
        "group.id": "analysts",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    seen = set()
    for half in range(2):  # The second consumer goes on where the first one stopped.
        consumer = Consumer(config)
        consumer.subscribe([TOPIC])
        taken = 0
        for _ in range(10 * TIMEOUT_S):
            for one in consumer.consume(100, timeout=0.1):
                assert one.error() is None, one.error()
                seen.add((one.partition(), one.offset()))
                taken += 1
            if taken >= count // 2:
                break
        assert taken >= count // 2
        if half == 0:
            consumer.commit(asynchronous=False)
        consumer.close()
    assert len(seen) == count
    told = run("group", "describe", "analysts", "-b", clusters.copy.bootstrap)
    assert TOPIC in told.stdout
    # As kafka-consumer-groups finds and sets it: the committed offsets, and the ends.
    admin = AdminClient({"bootstrap.servers": clusters.copy.bootstrap, "log_level": 0})
    behind = [
        TopicPartition(TOPIC, one, end - 3) for one, end in enumerate(ends(clusters.copy, TOPIC))
    ]
    moved = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions("analysts", behind)])
    moved["analysts"].result(TIMEOUT_S)
    committed, latest = offsets_and_ends(clusters.copy, "analysts")
    assert latest == ends(clusters.copy, TOPIC)
    lags = {one: latest[one] - offset for one, offset in committed.items()}
    shown = json.loads(
        run("group", "describe", "analysts", "-b", clusters.copy.bootstrap, "--json").stdout
    )
    rows = [one for one in found_rows(shown) if one.get("topic") == TOPIC]
    assert {one["partition"]: one["lag"] for one in rows} == lags
    assert lags == {0: 3, 1: 3}


def offsets_and_ends(cluster: DevCluster, group: str) -> tuple[dict[int, int], list[int]]:
    """({partition: committed offset}, the end of each partition), by the admin client."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    places = asked[group].result(TIMEOUT_S).topic_partitions
    listed = admin.list_offsets({TopicPartition(TOPIC, one): OffsetSpec.latest() for one in (0, 1)})
    found = {one.partition: future.result(TIMEOUT_S).offset for one, future in listed.items()}
    return {one.partition: one.offset for one in places}, [found[one] for one in sorted(found)]


def found_rows(told: object) -> Iterator[dict[str, object]]:
    """All objects with a topic in a JSON answer."""
    if isinstance(told, dict):
        if "topic" in told:
            yield told
        told = list(told.values())
    for one in told if isinstance(told, list) else ():
        yield from found_rows(one)


def test_writes_are_refused_with_a_sentence(clusters: Clusters) -> None:
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": clusters.copy.bootstrap, "retries": 3})
    producer.produce(TOPIC, b"x", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    assert [one.name() for one in errors] == ["POLICY_VIOLATION"]  # type: ignore[attr-defined]
    admin = AdminClient({"bootstrap.servers": clusters.copy.bootstrap})
    with pytest.raises(KafkaException, match="when its source does"):
        admin.create_partitions([NewPartitions(TOPIC, 9)])[TOPIC].result(TIMEOUT_S)
    with pytest.raises(KafkaException, match="POLICY_VIOLATION"):
        done = admin.delete_records([TopicPartition(TOPIC, 0, 5)])
        next(iter(done.values())).result(TIMEOUT_S)
    done = run("topic", "alter", TOPIC, "-c", "read.replica.of=file:///elsewhere",
               "-b", clusters.copy.bootstrap, check=False)  # fmt: skip
    assert "cannot change" in done.stderr


def test_what_is_wrong_with_a_source_is_told_when_the_copy_is_created(
    clusters: Clusters, tmp_path: Path
) -> None:
    def refusal(*arguments: str) -> str:
        done = run("topic", "create", *arguments, "-b", clusters.copy.bootstrap, check=False)
        assert done.returncode == 1
        return done.stderr

    url = clusters.url
    assert "has no topic trains of cluster" in refusal("trains", "--read-replica-of", url)
    assert "is of cluster" in refusal("copy", "--read-replica-of", f"{url}#other/{TOPIC}")
    bucket = tmp_path / "bucket"
    assert f"lacks {MARK}" in refusal("copy", "--read-replica-of", bucket.as_uri())
    bucket.mkdir()
    (bucket / MARK).touch()
    assert "has no tiered storage" in refusal("copy", "--read-replica-of", bucket.as_uri())
    told = refusal("copy", "-p", "5", "--read-replica-of", f"{url}#{TOPIC}")
    assert "the source has 2 partition(s)" in told


def test_how_far_the_copy_is_is_told(clusters: Clusters) -> None:
    told = run("topic", "describe", TOPIC, "-b", clusters.copy.bootstrap)
    assert f"read replica of {clusters.url}#" in told.stdout
    done = run("topic", "describe", TOPIC, "-b", clusters.copy.bootstrap, "--json")
    copies = json.loads(done.stdout)["topics"][0]["read_replicas"]
    assert [one["state"] for one in copies] == ["ready"] * PARTITIONS
    assert [one["end"] for one in copies] == ends(clusters.source, TOPIC)
    assert all(one["staleness_ms"] < 60_000 and one["failure"] is None for one in copies)


def test_a_copy_follows_records_and_partitions(clusters: Clusters) -> None:
    topic = "following"
    source, copy = clusters.source, clusters.copy
    create_source(source, topic)
    create_copy(clusters, topic)
    for first in (0, 300, 600):
        produce(source, topic, first, first + 300)
        until_copied(clusters, topic)
    count = sum(ends(source, topic))
    at_source = by_confluent(source.bootstrap, topic, count)
    assert by_confluent(copy.bootstrap, topic, count) == at_source
    admin = AdminClient({"bootstrap.servers": source.bootstrap})
    admin.create_partitions([NewPartitions(topic, PARTITIONS + 1)])[topic].result(TIMEOUT_S)

    def partitions() -> int:
        metadata = AdminClient({"bootstrap.servers": copy.bootstrap}).list_topics(topic, 10)
        return len(metadata.topics[topic].partitions)

    wait_until(lambda: partitions() == PARTITIONS + 1, what="the copy's third partition")


def test_a_copy_serves_on_through_restarts_and_without_its_source(tmp_path: Path) -> None:
    with two_clusters(tmp_path) as clusters:
        source, copy = clusters.source, clusters.copy
        create_source(source, TOPIC)
        produce(source, TOPIC, 0, 1_000)
        create_copy(clusters, TOPIC)
        until_copied(clusters, TOPIC)
        at_source = by_confluent(source.bootstrap, TOPIC, 1_000)
        copy.kill(1)
        assert by_confluent(copy.bootstrap, TOPIC, 1_000) == at_source
        source.kill(1)
        copy.kill(2)
        copy.kill(3)
        copy.start_all()
        assert by_confluent(copy.bootstrap, TOPIC, 1_000) == at_source
        assert by_aiokafka(copy.bootstrap, TOPIC, 1_000) == at_source
        source.start_all()
        produce(source, TOPIC, 1_000, 1_200)
        until_copied(clusters, TOPIC)
