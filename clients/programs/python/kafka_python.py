"""The program of kafka-python."""

import sys

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic
from lines import IDEMPOTENT, PARTITIONS, REPLICAS, RETENTION_MS, Stop, record, show

TIMEOUT_S = 30


def admin(bootstrap: str, topic: str) -> None:
    """Make, describe, alter and delete."""
    client = KafkaAdminClient(bootstrap_servers=bootstrap.split(","))
    for name in (topic, f"{topic}-gone"):
        client.create_topics([NewTopic(name, PARTITIONS, REPLICAS)])
    resource = ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": RETENTION_MS})
    client.alter_configs([resource])
    retention = ""
    while retention != RETENTION_MS:  # a broker may hear of the change a moment later
        described = client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        retention = _value(described, "retention.ms")
    print(f"partitions\t{len(client.describe_topics([topic])[0]['partitions'])}")
    print(f"retention.ms\t{retention}")
    client.delete_topics([f"{topic}-gone"])
    client.close()


def produce(bootstrap: str, topic: str, count: str, *kinds: str) -> None:
    """Write the records once for each kind."""
    for kind in kinds:
        is_idempotent = kind == IDEMPOTENT
        producer = KafkaProducer(
            bootstrap_servers=bootstrap.split(","),
            enable_idempotence=is_idempotent,
            compression_type=None if is_idempotent or kind == "none" else kind,
        )
        sent = []
        for number in range(int(count)):
            key, value, headers = record(number)
            sent.append(producer.send(f"{topic}-{kind}", key=key, value=value, headers=headers))
        producer.flush(TIMEOUT_S)
        for future in sent:
            future.get(TIMEOUT_S)
        producer.close()


def consume(bootstrap: str, topic: str, count: str) -> None:
    """Read with an assignment."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap.split(","), enable_auto_commit=False)
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    consumer.assign(partitions)
    consumer.seek_to_beginning()
    left = int(count)
    while left:
        left -= _show(consumer.poll(timeout_ms=500))
    consumer.close()


def member(bootstrap: str, topic: str, group: str) -> None:
    """Read as a member of a group."""
    stop = Stop()
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap.split(","),
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=500,
    )
    while not stop.is_asked:
        if _show(consumer.poll(timeout_ms=100)):
            consumer.commit()
    consumer.close()


def _show(polled) -> int:  # type: ignore[no-untyped-def]
    records = [one for batch in polled.values() for one in batch]
    for one in records:
        show(one.partition, one.offset, one.key, one.value, one.headers)
    return len(records)


def _value(described, key: str) -> str:  # type: ignore[no-untyped-def]
    """The value of a key, wherever this version of the client puts it."""
    if isinstance(described, dict):
        if key in described:
            found = described[key]
            return str(found.get("value") if isinstance(found, dict) else found)
        described = list(described.values())
    for inner in described if isinstance(described, list) else []:
        if value := _value(inner, key):
            return value
    return ""


if __name__ == "__main__":
    {"admin": admin, "produce": produce, "consume": consume, "member": member}[sys.argv[1]](
        *sys.argv[2:]
    )
