"""Real brokers tell clients of a network the addresses for that network, each other's too.

Source: decision 0069, "Listeners"; docs/operating/security-tls.md, "Listeners"."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.secure_cluster import plain_listener, secure_cluster, wait

pytestmark = pytest.mark.integration

TIMEOUT_S = 30


def told(admin: AdminClient) -> set[tuple[int, str, int]]:
    """(id, host, port) of each broker, as a client learns them."""
    known = admin.list_topics(timeout=TIMEOUT_S).brokers.values()
    return {(one.id, one.host, one.port) for one in known}


def described(admin: AdminClient) -> set[tuple[int, str, int]]:
    """The same, by DescribeCluster."""
    nodes = admin.describe_cluster(request_timeout=TIMEOUT_S).result().nodes
    return {(one.id, one.host, one.port) for one in nodes}


def test_every_broker_tells_the_addresses_for_the_clients_network(tmp_path: Path) -> None:
    with secure_cluster(tmp_path, count=2) as cluster:
        for broker in cluster.brokers.values():
            (port,) = broker.ports
            broker.sections = plain_listener("PLAINTEXT", port) + (
                f'advertised = "far.invalid:{port}"\n'
                f'advertised_for = ["10.0.0.0/8=ten.invalid:1", "127.0.0.0/8=localhost:{port}"]\n'
            )
        cluster.start()
        expected = {(one.id, "localhost", one.ports[0]) for one in cluster.brokers.values()}
        options: dict[str, object] = {}
        for broker in cluster.brokers.values():
            options = {
                "bootstrap.servers": f"127.0.0.1:{broker.ports[0]}",
                "broker.address.family": "v4",
            }
            admin = AdminClient(options)
            for ask in (told, described):
                wait(lambda ask=ask, to=admin: ask(to) == expected, lambda: f"not {expected}")  # type: ignore[misc]
        admin.create_topics([NewTopic("t", 2, 2)])["t"].result(TIMEOUT_S)
        # Leaders and the group's coordinator are reached by what was told: far.invalid is nowhere.
        producer = Producer(options)
        for partition in (0, 1):
            producer.produce("t", b"x", partition=partition)
        assert producer.flush(TIMEOUT_S) == 0
        consumer = Consumer(options | {"group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["t"])
        got: list[object] = []

        def has_both() -> bool:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                got.append(message.partition())
            return len(got) == 2

        wait(has_both, lambda: f"only {got} came")
        consumer.close()
