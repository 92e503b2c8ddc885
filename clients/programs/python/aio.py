"""The program of aiokafka."""

import asyncio
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from lines import IDEMPOTENT, PARTITIONS, REPLICAS, RETENTION_MS, Stop, record, show


async def admin(bootstrap: str, topic: str) -> None:
    """Make, describe, alter and delete."""
    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await client.start()
    for name in (topic, f"{topic}-gone"):
        await client.create_topics([NewTopic(name, PARTITIONS, REPLICAS)])
    altered = ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": RETENTION_MS})
    await client.alter_configs([altered])
    retention = ""
    while retention != RETENTION_MS:  # a broker may hear of the change a moment later
        asked = [ConfigResource(ConfigResourceType.TOPIC, topic)]
        answers = await client.describe_configs(asked)
        retention = {entry[0]: entry[1] for entry in answers[0].resources[0][4]}["retention.ms"]
    described = await client.describe_topics([topic])
    print(f"partitions\t{len(described[0]['partitions'])}")
    print(f"retention.ms\t{retention}")
    await client.delete_topics([f"{topic}-gone"])
    await client.close()


async def produce(bootstrap: str, topic: str, count: str, *kinds: str) -> None:
    """Write the records once for each kind."""
    for kind in kinds:
        is_idempotent = kind == IDEMPOTENT
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            enable_idempotence=is_idempotent,
            compression_type=None if is_idempotent or kind == "none" else kind,
        )
        await producer.start()
        sent = []
        for number in range(int(count)):
            key, value, headers = record(number)
            to = f"{topic}-{kind}"
            sent.append(await producer.send(to, key=key, value=value, headers=headers))
        await asyncio.gather(*sent)
        await producer.stop()


async def consume(bootstrap: str, topic: str, count: str) -> None:
    """Read with an assignment."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap)
    await consumer.start()
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    consumer.assign(partitions)
    await consumer.seek_to_beginning(*partitions)
    left = int(count)
    while left:
        left -= _show(await consumer.getmany(timeout_ms=500))
    await consumer.stop()


async def member(bootstrap: str, topic: str, group: str) -> None:
    """Read as a member of a group."""
    stop = Stop()
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=500,
    )
    await consumer.start()
    while not stop.is_asked:
        if _show(await consumer.getmany(timeout_ms=100)):
            await consumer.commit()
    await consumer.stop()


def _show(polled) -> int:  # type: ignore[no-untyped-def]
    records = [one for batch in polled.values() for one in batch]
    for one in records:
        show(one.partition, one.offset, one.key, one.value, one.headers)
    return len(records)


if __name__ == "__main__":
    steps = {"admin": admin, "produce": produce, "consume": consume, "member": member}
    asyncio.run(steps[sys.argv[1]](*sys.argv[2:]))
