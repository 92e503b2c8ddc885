"""Other people's clients, unchanged, against three real brokers: what one writes, each of the
others reads."""

import asyncio
import contextlib
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType
from tests.integration.conftest import DevCluster, wait_until
from tests.integration.raw_client import Broker

from strandline.controller.commands import ConfigOperation
from strandline.controller.commands import ResourceType as ControllerResource
from strandline.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

pytestmark = pytest.mark.integration

RECORDS = [(f"key-{n % 7}".encode(), f"value-{n}".encode() * (n % 5 + 1)) for n in range(500)]
TIMEOUT_S = 40


@pytest.fixture(scope="module", autouse=True)
def quick_groups(cluster: DevCluster) -> None:
    """Groups begin at once; in other tests they wait for more members, as is the default."""
    delay = AlterableConfig("group.initial.rebalance.delay.ms", ConfigOperation.SET, "0")
    everywhere = AlterConfigsResource(ControllerResource.BROKER, "", [delay])
    with Broker(cluster, 1).connect() as client:
        request = IncrementalAlterConfigsRequest([everywhere])
        answer = client.ask(request, IncrementalAlterConfigsResponse, 1)
    assert answer.responses[0].error_code == 0


@pytest.fixture
def topic(cluster: DevCluster, topic_name: str) -> str:
    """A topic of 3 partitions and 3 replicas, made by librdkafka's admin client."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    created = admin.create_topics([NewTopic(topic_name, num_partitions=3, replication_factor=3)])
    created[topic_name].result(TIMEOUT_S)
    return topic_name


def produce(cluster: DevCluster, topic: str, **options: object) -> None:
    """Write RECORDS with librdkafka; every delivery must succeed."""
    failures: list[object] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 5, **options})
    for key, value in RECORDS:
        producer.produce(
            topic, key=key, value=value,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )  # fmt: skip
        producer.poll(0)
    assert producer.flush(TIMEOUT_S) == 0
    assert failures == []


@contextlib.contextmanager
def consumer_of(cluster: DevCluster, group: str, **options: object) -> Iterator[Consumer]:
    """A librdkafka consumer that is closed at the end."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            **options,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def read_all(consumer: Consumer, count: int) -> list[tuple[bytes, bytes]]:
    """Read `count` records; a time-out fails the test."""
    records: list[tuple[bytes, bytes]] = []
    for _ in range(TIMEOUT_S * 10):
        for message in consumer.consume(num_messages=count - len(records), timeout=0.1):
            assert message.error() is None, message.error()
            records.append((message.key(), message.value()))
        if len(records) >= count:
            return records
    raise AssertionError(f"{len(records)} of {count} records")


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_librdkafka_reads_what_it_wrote_with_every_compression(
    cluster: DevCluster, topic: str, compression: str
) -> None:
    produce(cluster, topic, **{"compression.type": compression})
    with consumer_of(cluster, f"g-{topic}") as consumer:
        consumer.subscribe([topic])
        assert sorted(read_all(consumer, len(RECORDS))) == sorted(RECORDS)


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_acks_level_delivers(cluster: DevCluster, topic: str, acks: str) -> None:
    produce(cluster, topic, acks=acks)
    with consumer_of(cluster, f"g-{topic}") as consumer:
        consumer.subscribe([topic])
        assert sorted(read_all(consumer, len(RECORDS))) == sorted(RECORDS)


def test_an_idempotent_producer_keeps_order_within_each_key(
    cluster: DevCluster, topic: str
) -> None:
    produce(cluster, topic, **{"enable.idempotence": True})
    with consumer_of(cluster, f"g-{topic}") as consumer:
        consumer.subscribe([topic])
        records = read_all(consumer, len(RECORDS))
    for key in {key for key, _ in RECORDS}:
        assert [v for k, v in records if k == key] == [v for k, v in RECORDS if k == key]


def test_a_group_goes_on_where_it_committed(cluster: DevCluster, topic: str) -> None:
    produce(cluster, topic)
    group = f"g-{topic}"
    with consumer_of(cluster, group, **{"enable.auto.commit": False}) as consumer:
        consumer.subscribe([topic])
        first = read_all(consumer, 200)
        consumer.commit(asynchronous=False)
    with consumer_of(cluster, group, **{"enable.auto.commit": False}) as consumer:
        consumer.subscribe([topic])
        rest = read_all(consumer, len(RECORDS) - 200)
    assert sorted(first + rest) == sorted(RECORDS)


def test_two_members_of_a_group_share_the_partitions(cluster: DevCluster, topic: str) -> None:
    group = f"g-{topic}"
    options = {"partition.assignment.strategy": "range"}
    with (
        consumer_of(cluster, group, **options) as one,
        consumer_of(cluster, group, **options) as two,
    ):
        one.subscribe([topic])
        two.subscribe([topic])
        for _ in range(TIMEOUT_S * 10):
            one.poll(0.05)
            two.poll(0.05)
            mine, yours = one.assignment(), two.assignment()
            if mine and yours and len(mine) + len(yours) == 3:
                break
        partitions = [p.partition for p in one.assignment() + two.assignment()]
        assert sorted(partitions) == [0, 1, 2]


def test_offsets_are_found_by_time(cluster: DevCluster, topic: str) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    first_ms = int(time.time() * 1_000)
    for number in range(10):
        producer.produce(topic, value=b"x", partition=0, timestamp=first_ms + number * 1_000)
        producer.flush(TIMEOUT_S)
    with consumer_of(cluster, f"g-{topic}") as consumer:
        asked = [TopicPartition(topic, 0, first_ms + 4_500)]
        found = consumer.offsets_for_times(asked, timeout=TIMEOUT_S)
        assert found[0].offset == 5
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=TIMEOUT_S) == (
            0,
            10,
        )


def test_admin_sees_and_changes_topics_and_configuration(cluster: DevCluster, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    metadata = admin.list_topics(topic, timeout=TIMEOUT_S)
    assert len(metadata.topics[topic].partitions) == 3
    assert all(len(p.replicas) == 3 for p in metadata.topics[topic].partitions.values())
    wait_until(
        lambda: sorted(admin.list_topics(timeout=TIMEOUT_S).brokers) == [1, 2, 3],
        what="all brokers to be named",
    )
    resource = ConfigResource(ResourceType.TOPIC, topic, {"retention.ms": "123456"})
    for future in admin.incremental_alter_configs([_incremental(resource)]).values():
        future.result(TIMEOUT_S)

    def told() -> str:
        (future,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
        return str(future.result(TIMEOUT_S)["retention.ms"].value)

    # The broker that is asked may hear of it after the controller.
    wait_until(lambda: told() == "123456", what="the change to be told")
    for future in admin.delete_topics([topic]).values():
        future.result(TIMEOUT_S)


def _incremental(resource: ConfigResource) -> ConfigResource:
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry

    entry = ConfigEntry("retention.ms", "123456", incremental_operation=AlterConfigOpType.SET)
    return ConfigResource(ResourceType.TOPIC, resource.name, incremental_configs=[entry])


def test_a_topic_that_is_there_already_or_has_an_illegal_name_is_refused(
    cluster: DevCluster, topic: str
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for name, reason in ((topic, "TOPIC_ALREADY_EXISTS"), ("../x", "TOPIC_EXCEPTION")):
        future = admin.create_topics([NewTopic(name, 1, 1)])[name]
        with pytest.raises(KafkaException) as caught:
            future.result(TIMEOUT_S)
        assert reason in caught.value.args[0].name()


def test_kafka_python_reads_what_librdkafka_wrote_and_the_reverse(
    cluster: DevCluster, topic: str
) -> None:
    from kafka import KafkaConsumer, KafkaProducer

    servers = cluster.bootstrap.split(",")
    produce(cluster, topic)
    producer = KafkaProducer(bootstrap_servers=servers, acks="all")
    sent = [producer.send(topic, key=b"python", value=f"{n}".encode()) for n in range(100)]
    for future in sent:
        future.get(timeout=TIMEOUT_S)
    producer.close()
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=servers,
        group_id=f"g-{topic}",
        auto_offset_reset="earliest",
        consumer_timeout_ms=TIMEOUT_S * 1000,
    )
    records = []
    for record in consumer:
        records.append((record.key, record.value))
        if len(records) == len(RECORDS) + 100:
            break
    consumer.close()
    expected = RECORDS + [(b"python", f"{n}".encode()) for n in range(100)]
    assert sorted(records) == sorted(expected)


def test_kafka_python_sees_how_large_logs_are_and_how_much_room_is_left(
    cluster: DevCluster, topic: str
) -> None:
    from kafka import KafkaAdminClient

    produce(cluster, topic)
    written = sum(len(key) + len(value) for key, value in RECORDS)
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap.split(","))

    def sizes() -> list[int]:
        """Of what each broker has of the topic; 0 if it lacks a replica, or records."""
        found = []
        for broker in admin.describe_log_dirs([topic]):
            (directory,) = broker["log_dirs"]
            assert directory["error_code"] == 0 and directory["log_dir"].startswith("/")
            assert 0 < directory["usable_bytes"] <= directory["total_bytes"]
            logs = [log for one in directory["topics"] for log in one["partitions"]]
            assert not any(log["is_future_key"] for log in logs)
            has_all = sorted(log["partition_index"] for log in logs) == [0, 1, 2]
            is_late = any(log["offset_lag"] for log in logs)
            sizes = [log["partition_size"] for log in logs if has_all and not is_late]
            found.append(sum(sizes))
        return found

    wait_until(lambda: sum(size > written for size in sizes()) == 3, what="all three to have it")
    admin.close()


def test_aiokafka_produces_and_consumes_in_a_group(cluster: DevCluster, topic: str) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async def scenario() -> list[tuple[bytes | None, bytes | None]]:
        producer = AIOKafkaProducer(
            bootstrap_servers=cluster.bootstrap, enable_idempotence=True, compression_type="gzip"
        )
        await producer.start()
        try:
            for key, value in RECORDS:
                await producer.send(topic, key=key, value=value)
            await producer.flush()
        finally:
            await producer.stop()
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=cluster.bootstrap,
            group_id=f"g-{topic}",
            auto_offset_reset="earliest",
        )
        await consumer.start()
        records: list[tuple[bytes | None, bytes | None]] = []
        try:
            async with asyncio.timeout(TIMEOUT_S):
                while len(records) < len(RECORDS):
                    record = await consumer.getone()
                    records.append((record.key, record.value))
            await consumer.commit()
        finally:
            await consumer.stop()
        return records

    assert sorted(asyncio.run(scenario())) == sorted(RECORDS)
