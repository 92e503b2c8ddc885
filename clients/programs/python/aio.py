"""The program of aiokafka."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.abc import AbstractTokenProvider
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, for_code
from lines import (
    IDEMPOTENT,
    PARTITIONS,
    REPLICAS,
    RETENTION_MS,
    Logged,
    Stop,
    access,
    record,
    show,
    ssl_context,
    token,
)

TIMEOUT_S = 30


class Tokens(AbstractTokenProvider):
    """A new token for each login."""

    async def token(self) -> str:
        """By the client's credentials."""
        return await asyncio.to_thread(token)


def settings(bootstrap: str) -> dict[str, object]:
    """What every client of aiokafka needs to come in."""
    found: dict[str, object] = {"bootstrap_servers": bootstrap}
    told = access()
    if told:
        found |= {"security_protocol": told["protocol"], "ssl_context": ssl_context()}
    if "mechanism" in told:
        found |= {"sasl_mechanism": told["mechanism"]}
    if "user" in told:
        found |= {"sasl_plain_username": told["user"], "sasl_plain_password": told["password"]}
    if "token_url" in told:
        found |= {"sasl_oauth_token_provider": Tokens()}
    return found


async def admin(bootstrap: str, topic: str) -> None:
    """Make, describe, alter and delete."""
    client = AIOKafkaAdminClient(**settings(bootstrap))
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
            **settings(bootstrap),
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
    consumer = AIOKafkaConsumer(**settings(bootstrap))
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
        **settings(bootstrap),
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=500,
    )
    await consumer.start()
    while not stop.is_asked:
        if _show(await consumer.getmany(timeout_ms=100)):
            await _commit(consumer)
    await consumer.stop()


async def writer(bootstrap: str, topic: str) -> None:
    """Write idempotently until asked to stop; print each record that was acknowledged."""
    stop = Stop()
    producer = AIOKafkaProducer(**settings(bootstrap), enable_idempotence=True)
    await producer.start()
    number = 0
    while not stop.is_asked:
        key, value, headers = record(number)
        await producer.send_and_wait(topic, key=key, value=value, headers=headers)
        print(f"acked\t{number}", flush=True)
        number += 1
    await producer.stop()


async def survey(bootstrap: str, topic: str, group: str) -> None:
    """Print the log's ends, the groups that are seen, and what a group has committed."""
    consumer = AIOKafkaConsumer(**settings(bootstrap))
    await consumer.start()
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    for at, offset in (await consumer.end_offsets(partitions)).items():
        print(f"end\t{at.partition}\t{offset}")
    await consumer.stop()
    client = AIOKafkaAdminClient(**settings(bootstrap))
    await client.start()
    for found, _ in await client.list_consumer_groups():
        print(f"group\t{found}")
    for at, committed in (await client.list_consumer_group_offsets(group)).items():
        print(f"committed\t{at.partition}\t{committed.offset}")
    await client.close()


async def attempt(bootstrap: str, name: str, what: str) -> None:
    """Try one thing; print `done`, or `refused` with the class of the error."""
    logged = Logged()
    try:
        await ATTEMPTS[what](settings(bootstrap), name)
    except KafkaError as error:
        print(f"refused\t{type(error).__name__} {logged.errors}".rstrip())
    else:
        print("done")


async def _write(told: dict[str, object], topic: str) -> None:
    async with AIOKafkaProducer(**told, enable_idempotence=True) as producer:
        await producer.send_and_wait(topic, b"x")


async def _read(told: dict[str, object], topic: str) -> None:
    await _subscribe(told, topic, f"allowed-{topic}")


async def _join(told: dict[str, object], group: str) -> None:
    await _subscribe(told, "allowed-seen", group)


async def _subscribe(told: dict[str, object], topic: str, group: str) -> None:
    consumer = AIOKafkaConsumer(topic, **told, group_id=group, auto_offset_reset="earliest")
    async with consumer, asyncio.timeout(TIMEOUT_S):
        await consumer.getone()


@asynccontextmanager
async def _administrator(told: dict[str, object]) -> AsyncIterator[AIOKafkaAdminClient]:
    client = AIOKafkaAdminClient(**told)
    await client.start()
    try:
        yield client
    finally:
        await client.close()


async def _create(told: dict[str, object], topic: str) -> None:
    async with _administrator(told) as client:
        answer = await client.create_topics([NewTopic(topic, PARTITIONS, REPLICAS)])
        _check(answer.topic_errors[0][1])


async def _delete(told: dict[str, object], topic: str) -> None:
    async with _administrator(told) as client:
        answer = await client.delete_topics([topic])
        _check(answer.topic_error_codes[0][1])


async def _operate(told: dict[str, object], _: str) -> None:
    async with _administrator(told) as client:
        broker = ConfigResource(ConfigResourceType.BROKER, "1", {"log.cleaner.threads": "1"})
        answers = await client.alter_configs([broker])
        _check(answers[-1].resources[0][0])  # the first is about topics


async def _log_in(told: dict[str, object], topic: str) -> None:
    async with _administrator(told) as client:
        await client.describe_topics([topic])


def _check(code: int) -> None:
    """aiokafka hands an answer's error codes to its user."""
    if code:
        raise for_code(code)()


ATTEMPTS = {
    "write": _write,
    "read": _read,
    "join": _join,
    "create": _create,
    "delete": _delete,
    "operate": _operate,
    "login": _log_in,
}


async def _commit(consumer: AIOKafkaConsumer) -> None:
    """What was read so far; a connection that ends takes it with the next records."""
    try:
        await consumer.commit()
    except KafkaError as error:
        if not error.retriable:
            raise


def _show(polled) -> int:  # type: ignore[no-untyped-def]
    records = [one for batch in polled.values() for one in batch]
    for one in records:
        show(one.partition, one.offset, one.key, one.value, one.headers)
    return len(records)


if __name__ == "__main__":
    steps = (admin, produce, consume, member, writer, survey, attempt)
    asyncio.run({step.__name__: step for step in steps}[sys.argv[1]](*sys.argv[2:]))
