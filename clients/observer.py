"""The client that checks the others: reads, writes, looks at groups and topics.

How:    librdkafka by confluent-kafka. What librdkafka's own relatives wrote is read by aiokafka,
        so that no client checks itself."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import aiokafka
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from clients.access.login import Login
from clients.records import CellError, Found, Written

PARTITIONS, REPLICAS = 4, 3
TIMEOUT_S = 40
POLL_S = 0.05


class Observer:
    """Looks at one cluster."""

    def __init__(self, bootstrap: str, *, login: Login | None = None) -> None:
        self.bootstrap = bootstrap
        self._login = login
        self._told = {
            "bootstrap.servers": bootstrap,
            **(login.librdkafka() if login else {}),
        }
        self._admin = AdminClient(self._told)

    def create(self, *topics: str) -> None:
        """Make topics; returns when each partition has a leader."""
        wanted = [NewTopic(topic, PARTITIONS, REPLICAS) for topic in topics]
        for made in self._admin.create_topics(wanted).values():
            made.result(TIMEOUT_S)
        for topic in topics:
            wait(partial(self._has_leaders, topic), what=f"leaders of {topic}")

    def delete(self, *topics: str) -> None:
        """Delete topics."""
        for gone in self._admin.delete_topics(list(topics)).values():
            gone.result(TIMEOUT_S)

    def topics(self) -> dict[str, list[int]]:
        """{topic: replicas of each partition}."""
        found = self._admin.list_topics(timeout=TIMEOUT_S).topics
        return {
            name: [len(partition.replicas) for partition in topic.partitions.values()]
            for name, topic in found.items()
        }

    def config(self, topic: str, key: str) -> str:
        """One key of a topic's configuration."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        described = self._admin.describe_configs([resource])[resource].result(TIMEOUT_S)
        return str(described[key].value)

    def write(self, topic: str, numbers: Sequence[int], *, codec: str = "none") -> None:
        """Write records in their order."""
        producer = Producer(
            {
                **self._told,
                "compression.type": codec,
                "enable.idempotence": True,
                "linger.ms": 5,
            }
        )
        failures: list[str] = []
        for number in numbers:
            record = Written(number)
            producer.produce(
                topic,
                key=record.key,
                value=record.value,
                headers=[(name, value.encode()) for name, value in record.headers],
                on_delivery=lambda error, _: failures.append(str(error)) if error else None,
            )
        if producer.flush(TIMEOUT_S) or failures:
            raise CellError(f"the observer could not write to {topic}: {failures[:1]}")

    def end_offsets(self, topic: str) -> dict[int, int]:
        """{partition: log end}."""
        with _Reading(self._told) as consumer:
            found = consumer.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions
            return {
                number: consumer.get_watermark_offsets(
                    TopicPartition(topic, number), timeout=TIMEOUT_S
                )[1]
                for number in found
            }

    def read(self, topic: str) -> list[Found]:
        """Every record of a topic."""
        ends = self.end_offsets(topic)
        left = {number for number, end in ends.items() if end}
        records: list[Found] = []
        deadline = time.monotonic() + TIMEOUT_S
        with _Reading(self._told) as consumer:
            consumer.assign([TopicPartition(topic, number, 0) for number in sorted(left)])
            while left:
                if time.monotonic() > deadline:
                    raise CellError(f"{topic}: partitions {sorted(left)} not read to their end")
                for message in consumer.consume(500, timeout=0.2):
                    if message.error():
                        raise CellError(f"{topic}: the observer read {message.error()}")
                    records.append(_found(message))
                    if message.offset() + 1 >= ends[message.partition()]:
                        left.discard(message.partition())
        return records

    def read_by_another(self, topic: str) -> list[Found]:
        """The same with aiokafka."""
        ends = {number: end for number, end in self.end_offsets(topic).items() if end}
        return asyncio.run(_read_with_aiokafka(self.bootstrap, topic, ends, self._login))

    def assignment(self, group: str) -> list[int]:
        """How many partitions each member has; empty unless the group is stable."""
        try:
            described = self._admin.describe_consumer_groups([group])[group].result(TIMEOUT_S)
        except KafkaException:
            return []  # The coordinator moves.
        if described.state.name != "STABLE":
            return []
        return sorted(len(member.assignment.topic_partitions) for member in described.members)

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """{(topic, partition): offset} of a group."""
        asked = [ConsumerGroupTopicPartitions(group)]
        found = self._admin.list_consumer_group_offsets(asked)[group].result(TIMEOUT_S)
        return {(p.topic, p.partition): p.offset for p in found.topic_partitions}

    def _has_leaders(self, topic: str) -> bool:
        found = self._admin.list_topics(timeout=TIMEOUT_S).topics.get(topic)
        return found is not None and all(p.leader >= 0 for p in found.partitions.values())


class _Reading:
    """A consumer without a group that is closed at the end."""

    def __init__(self, told: Mapping[str, str]) -> None:
        self._consumer = Consumer(
            {
                **told,
                "group.id": "observer",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )

    def __enter__(self) -> Consumer:
        return self._consumer

    def __exit__(self, *_: object) -> None:
        self._consumer.close()


async def _read_with_aiokafka(
    bootstrap: str, topic: str, ends: dict[int, int], login: Login | None
) -> list[Found]:
    wanted = {aiokafka.TopicPartition(topic, number): end for number, end in ends.items()}
    told = login.aiokafka() if login else {}
    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=bootstrap, enable_auto_commit=False, **told
    )
    await consumer.start()
    records: list[Found] = []
    try:
        consumer.assign(list(wanted))
        await consumer.seek_to_beginning()
        async with asyncio.timeout(TIMEOUT_S):
            while len(records) < sum(ends.values()):
                for batch in (await consumer.getmany(timeout_ms=200)).values():
                    records += [_found_by_aiokafka(record) for record in batch]
    except TimeoutError as error:
        raise CellError(f"{topic}: {len(records)} of {sum(ends.values())} records read") from error
    finally:
        await consumer.stop()
    return records


def _found_by_aiokafka(record: "aiokafka.ConsumerRecord[bytes, bytes]") -> Found:
    return Found(
        partition=record.partition,
        offset=record.offset,
        key=(record.key or b"").decode(),
        value=None if record.value is None else record.value.decode(),
        headers=tuple((name, text.decode()) for name, text in record.headers),
    )


def _found(message: object) -> Found:
    key, value = message.key(), message.value()  # type: ignore[attr-defined]
    headers = message.headers() or []  # type: ignore[attr-defined]
    return Found(
        partition=message.partition(),  # type: ignore[attr-defined]
        offset=message.offset(),  # type: ignore[attr-defined]
        key="" if key is None else key.decode(),
        value=None if value is None else value.decode(),
        headers=tuple((name, (text or b"").decode()) for name, text in headers),
    )


def wait(condition: Callable[[], bool], *, what: str, timeout_s: float = TIMEOUT_S) -> None:
    """Wait for a condition; a bound, not a measurement."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise CellError(f"not within {timeout_s:g} s: {what}")
        time.sleep(POLL_S)
