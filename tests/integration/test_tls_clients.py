"""Other people's clients come to listeners with TLS and with certificates of their own (decision
0069)."""

import asyncio
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer, KafkaProducer
from tests.integration.secure_cluster import (
    SecureCluster,
    plain_listener,
    secure_cluster,
    tls_listener,
    wait,
)

from strandline.security.authority import Files

pytestmark = pytest.mark.integration

TIMEOUT_S = 40
VALUES = [f"value-{number}".encode() * (number % 2_000) for number in range(100)]
PLAIN, TLS, MUTUAL = range(3)


@dataclass
class World:
    cluster: SecureCluster
    app: Files
    server: Files


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A broker with a plain listener, one with TLS, and one that requires certificates."""
    with secure_cluster(tmp_path_factory.mktemp("tls"), listeners=3) as cluster:
        authority = cluster.authority
        server, app = authority.issue("server"), authority.issue("app", subject="CN=app,O=us")
        (broker,) = cluster.brokers.values()
        broker.sections = (
            plain_listener("PLAIN", broker.ports[PLAIN])
            + tls_listener("TLS", broker.ports[TLS], server)
            + tls_listener(
                "MUTUAL",
                broker.ports[MUTUAL],
                server,
                'client_certificates = "required"',
                'principal_mapping_rules = "RULE:^CN=(.*?),.*$/$1/, DEFAULT"',
            )
        )
        cluster.start()
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap(PLAIN)})
        topics = [NewTopic(one, num_partitions=1, replication_factor=1) for one in ("t", "a", "k")]
        for made in admin.create_topics(topics).values():
            made.result(TIMEOUT_S)
        yield World(cluster, app, server)


def librdkafka_options(world: World, listener: int) -> dict[str, object]:
    options: dict[str, object] = {"bootstrap.servers": world.cluster.bootstrap(listener)}
    if listener != PLAIN:
        options |= {"security.protocol": "SSL", "ssl.ca.location": str(world.app.trust)}
    if listener == MUTUAL:
        options |= {
            "ssl.certificate.location": str(world.app.certificate),
            "ssl.key.location": str(world.app.key),
        }
    return options


def context_of(world: World, listener: int) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(world.app.trust))
    if listener == MUTUAL:
        context.load_cert_chain(world.app.certificate, world.app.key)
    return context


@pytest.mark.parametrize("listener", [TLS, MUTUAL])
def test_librdkafka_writes_and_reads_through_tls(world: World, listener: int) -> None:
    options = librdkafka_options(world, listener)
    admin = AdminClient(options)
    brokers = admin.list_topics(timeout=TIMEOUT_S).brokers
    port = world.cluster.brokers[1].ports[listener]
    assert {f"{one.host}:{one.port}" for one in brokers.values()} == {f"127.0.0.1:{port}"}
    failures: list[object] = []
    producer = Producer({**options, "linger.ms": 5})
    for value in VALUES:
        producer.produce("t", value, on_delivery=lambda error, _: error and failures.append(error))
    assert producer.flush(TIMEOUT_S) == 0 and failures == []
    consumer = Consumer({**options, "group.id": f"g-{listener}", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition("t", 0, 0)])
    read: list[bytes] = []

    def has_all() -> bool:
        read.extend(one.value() for one in consumer.consume(len(VALUES) - len(read), timeout=0.1))
        return len(read) >= len(VALUES)

    wait(has_all, lambda: f"{len(read)} records")
    consumer.close()
    assert read == VALUES


@pytest.mark.parametrize("listener", [TLS, MUTUAL])
def test_kafka_python_writes_and_reads_through_tls(world: World, listener: int) -> None:
    options = {
        "bootstrap_servers": world.cluster.bootstrap(listener),
        "security_protocol": "SSL",
        "ssl_context": context_of(world, listener),
    }
    producer = KafkaProducer(**options)
    offsets = [producer.send("k", value).get(TIMEOUT_S).offset for value in VALUES[:20]]
    producer.close()
    consumer = KafkaConsumer(
        "k", auto_offset_reset="earliest", consumer_timeout_ms=TIMEOUT_S * 1000, **options
    )
    read: list[bytes] = []
    for message in consumer:
        if message.offset >= offsets[0]:
            read.append(message.value)
        if message.offset == offsets[-1]:
            break
    consumer.close()
    assert read == VALUES[:20]


@pytest.mark.parametrize("listener", [TLS, MUTUAL])
def test_aiokafka_writes_and_reads_through_tls(world: World, listener: int) -> None:
    options = {
        "bootstrap_servers": world.cluster.bootstrap(listener),
        "security_protocol": "SSL",
        "ssl_context": context_of(world, listener),
    }

    async def main() -> list[bytes]:
        async with AIOKafkaProducer(**options) as producer:
            sent = [await producer.send_and_wait("a", value) for value in VALUES[:20]]
        async with AIOKafkaConsumer("a", auto_offset_reset="earliest", **options) as consumer:
            read: list[bytes] = []
            async with asyncio.timeout(TIMEOUT_S):
                async for message in consumer:
                    if message.offset >= sent[0].offset:
                        read.append(message.value)
                    if message.offset == sent[-1].offset:
                        return read
        raise AssertionError("no end")

    assert asyncio.run(main()) == VALUES[:20]


def test_a_client_without_a_certificate_does_not_get_in(world: World) -> None:
    options = librdkafka_options(world, TLS) | {
        "bootstrap.servers": world.cluster.bootstrap(MUTUAL)
    }
    told: list[str] = []
    producer = Producer({**options, "error_cb": lambda error: told.append(str(error))})
    wait(lambda: producer.poll(0.05) >= 0 and bool(told), lambda: "no error")
    world.cluster.brokers[1].wait_logged("the client showed no certificate, and must")


def test_renewed_certificates_are_in_use_and_connections_live_on(world: World) -> None:
    producer = Producer(librdkafka_options(world, MUTUAL))
    done: list[object] = []

    def write() -> None:
        producer.produce("t", b"x", on_delivery=lambda error, _: done.append(error))
        assert producer.flush(TIMEOUT_S) == 0
        assert done.pop() is None

    write()
    renewed = world.cluster.authority.issue("renewed", subject="CN=renewed")
    for new, old in (
        (renewed.certificate, world.server.certificate),
        (renewed.key, world.server.key),
    ):
        old.write_bytes(new.read_bytes())
    broker = world.cluster.brokers[1]
    broker.wait_logged("[[listener]] TLS: new TLS handshakes use the changed files")
    pem = ssl.get_server_certificate(("127.0.0.1", broker.ports[TLS]), timeout=TIMEOUT_S)
    assert pem.strip() == renewed.certificate.read_text().strip()
    write()
    assert "closed the connection from 127.0.0.1 at listener TLS" not in broker.log


def test_files_that_cannot_be_used_end_the_broker_in_one_line(tmp_path: Path) -> None:
    with secure_cluster(tmp_path) as cluster:
        broker = cluster.brokers[1]
        files = cluster.authority.issue("server")
        other = cluster.authority.issue("other")
        broker.sections = tls_listener(
            "TLS", broker.ports[0], Files(files.certificate, other.key, files.trust)
        )
        broker.start(cluster.seeds)
        assert broker.process is not None and broker.process.wait(TIMEOUT_S) != 0
        assert broker.log.strip() == (
            f"error: [[listener]] TLS: the key in {other.key} is not the one of the certificate in "
            f"{files.certificate}: both must be of one request"
        )
