"""The program of confluent-kafka (librdkafka)."""

import sys

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from lines import IDEMPOTENT, PARTITIONS, REPLICAS, RETENTION_MS, Stop, record, show

TIMEOUT_S = 30


def admin(bootstrap: str, topic: str) -> None:
    """Make, describe, alter and delete."""
    client = AdminClient({"bootstrap.servers": bootstrap})
    for name in (topic, f"{topic}-gone"):
        client.create_topics([NewTopic(name, PARTITIONS, REPLICAS)])[name].result(TIMEOUT_S)
    entry = ConfigEntry("retention.ms", RETENTION_MS, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)
    retention = ""
    while retention != RETENTION_MS:  # a broker may hear of the change a moment later
        described = client.describe_configs([resource])[resource].result(TIMEOUT_S)
        retention = described["retention.ms"].value
    print(f"partitions\t{len(client.list_topics(topic).topics[topic].partitions)}")
    print(f"retention.ms\t{retention}")
    client.delete_topics([f"{topic}-gone"])[f"{topic}-gone"].result(TIMEOUT_S)


def produce(bootstrap: str, topic: str, count: str, *kinds: str) -> None:
    """Write the records once for each kind."""
    for kind in kinds:
        is_idempotent = kind == IDEMPOTENT
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": is_idempotent,
                "compression.type": "none" if is_idempotent else kind,
            }
        )
        failures: list[object] = []
        for number in range(int(count)):
            key, value, headers = record(number)
            producer.produce(
                f"{topic}-{kind}",
                key=key,
                value=value,
                headers=headers,
                on_delivery=lambda error, _, to=failures: to.append(error) if error else None,
            )
        left = producer.flush(TIMEOUT_S)
        if left or failures:
            sys.exit(f"{kind}: {left} left, {failures[:1]}")


def consume(bootstrap: str, topic: str, count: str) -> None:
    """Read with an assignment."""
    consumer = _consumer(bootstrap, "unused")
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    left = int(count)
    while left:
        left -= len([_show(m) for m in consumer.consume(left, timeout=1)])
    consumer.close()


def member(bootstrap: str, topic: str, group: str) -> None:
    """Read as a member of a group."""
    stop = Stop()
    consumer = _consumer(bootstrap, group)
    consumer.subscribe([topic])
    while not stop.is_asked:
        messages = consumer.consume(100, timeout=0.1)
        for message in messages:
            _show(message)
        if messages:
            consumer.commit(asynchronous=False)
    consumer.close()


def _consumer(bootstrap: str, group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "heartbeat.interval.ms": 500,
        }
    )


def _show(message) -> None:  # type: ignore[no-untyped-def]
    if message.error():
        sys.exit(str(message.error()))
    show(message.partition(), message.offset(), message.key(), message.value(), message.headers())


if __name__ == "__main__":
    {"admin": admin, "produce": produce, "consume": consume, "member": member}[sys.argv[1]](
        *sys.argv[2:]
    )
