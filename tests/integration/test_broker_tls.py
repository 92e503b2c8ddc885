"""A cluster turns on TLS between its brokers, one after the other, under load; intruders stay
out (decision 0069)."""

import ssl
import threading
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.ports import free_ports
from tests.integration.secure_cluster import (
    CLUSTER_ID,
    SecureBroker,
    SecureCluster,
    plain_listener,
    secure_cluster,
    tls_listener,
    wait,
)

from strandline.security.authority import Authority, Files

pytestmark = pytest.mark.integration

TIMEOUT_S = 60


def issue(authority: Authority, broker: int) -> Files:
    uri = f"strandline://{CLUSTER_ID}/broker/{broker}"
    return authority.issue(f"peer-{broker}", dns=(), ips=(), uris=(uri,))


def rpc_section(files: Files, mode: str) -> str:
    return (
        f'tls = "{mode}"\ncertificate = "{files.certificate}"\n'
        f'private_key = "{files.key}"\ntrust = "{files.trust}"\n'
    )


class Load:
    """Writes with acks=all until it is stopped; every write must succeed in the end."""

    def __init__(self, client: dict[str, object]) -> None:
        self.written = 0
        self.failures: list[str] = []
        self._is_over = threading.Event()
        self._producer = Producer({**client, "acks": "all", "linger.ms": 2})
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()
        assert self._producer.flush(TIMEOUT_S) == 0
        assert self.failures == []

    def _run(self) -> None:
        while not self._is_over.wait(0.02):
            self._producer.produce("t", b"x" * 100, on_delivery=self._on_delivery)
            self._producer.poll(0)

    def _on_delivery(self, error: object, _: object) -> None:
        if error:
            self.failures.append(str(error))
        else:
            self.written += 1


def restart(cluster: SecureCluster, broker: SecureBroker, load: Load) -> None:
    """Stop and start a broker; it serves again, and writes go on."""
    served = broker.log.count("serves Kafka clients on")
    broker.stop()
    broker.start(cluster.seeds)
    broker.wait_logged("serves Kafka clients on", count=served + 1)
    before = load.written
    wait(lambda: load.written > before + 20, lambda: f"no writes: {load.failures}")


def test_a_cluster_goes_from_open_to_closed_without_a_failed_write(tmp_path: Path) -> None:
    """As docs/operating/security.md says: both kinds first, then one, broker by broker."""
    with secure_cluster(tmp_path, count=3, listeners=2) as cluster:
        authority = cluster.authority
        peers = {number: issue(authority, number) for number in cluster.brokers}
        server, app = authority.issue("server"), authority.issue("app")
        for broker in cluster.brokers.values():
            broker.sections = f"[listener]\nkafka_port = {broker.ports[0]}\n"
        cluster.start()
        plain: dict[str, object] = {"bootstrap.servers": cluster.bootstrap(0)}
        admin = AdminClient(plain)
        made = admin.create_topics([NewTopic("t", num_partitions=3, replication_factor=3)])
        made["t"].result(TIMEOUT_S)
        load = Load(plain)
        for number, broker in cluster.brokers.items():
            closed = tls_listener(
                "TLS", broker.ports[1], server, 'client_certificates = "required"'
            )
            broker.rpc = rpc_section(peers[number], "prefer")
            broker.sections = plain_listener("PLAINTEXT", broker.ports[0]) + closed
            restart(cluster, broker, load)
        load.stop()
        secure: dict[str, object] = {
            "bootstrap.servers": cluster.bootstrap(1),
            "security.protocol": "SSL",
            "ssl.ca.location": str(app.trust),
            "ssl.certificate.location": str(app.certificate),
            "ssl.key.location": str(app.key),
        }
        load = Load(secure)
        for number, broker in cluster.brokers.items():
            broker.rpc = rpc_section(peers[number], "require")
            broker.sections = broker.sections[broker.sections.rindex("[[listener]]") :]
            restart(cluster, broker, load)
        load.stop()
        assert_no_one_else_gets_in(cluster, tmp_path, secure)


def assert_no_one_else_gets_in(
    cluster: SecureCluster, directory: Path, client: dict[str, object]
) -> None:
    """Brokers without the cluster's trust, and one with another broker's certificate, do not
    join."""
    seed = cluster.brokers[1]
    stranger = issue(Authority(directory / "other"), 4)
    trusting = Files(stranger.certificate, stranger.key, cluster.authority.trust)
    for rpc, reason in (
        ("", "a client without TLS came to a port with TLS"),
        (rpc_section(trusting, "require"), "the client's certificate is not accepted"),
    ):
        intruder = intruding(directory / f"intruder-{len(rpc)}", rpc)
        intruder.start(cluster.seeds)
        try:
            seed.wait_logged(reason)
            assert "serves Kafka clients" not in intruder.log
        finally:
            intruder.stop()
    borrower = intruding(
        directory / "borrower", rpc_section(issue(cluster.authority, 2), "require")
    )
    borrower.start(cluster.seeds)
    assert borrower.process is not None and borrower.process.wait(TIMEOUT_S) != 0
    assert "is broker 2's, and this is broker 4: give the one of broker 4" in borrower.log
    admin = AdminClient(client)
    assert set(admin.list_topics(timeout=TIMEOUT_S).brokers) == {1, 2, 3}


def intruding(directory: Path, rpc: str) -> SecureBroker:
    """A broker that is none of the cluster, and says that it is broker 4."""
    rpc_port, kafka_port = free_ports(2)
    intruder = SecureBroker(4, directory, rpc_port, [kafka_port])
    intruder.sections = plain_listener("PLAINTEXT", kafka_port)
    intruder.rpc = rpc
    return intruder


def test_the_http_port_has_tls_and_says_how_long_certificates_hold(tmp_path: Path) -> None:
    with secure_cluster(tmp_path, listeners=2) as cluster:
        broker = cluster.brokers[1]
        server, monitor = cluster.authority.issue("http", days=20), cluster.authority.issue("m")
        port = broker.ports[1]
        broker.rpc = rpc_section(issue(cluster.authority, 1), "require")
        broker.sections = (
            plain_listener("PLAINTEXT", broker.ports[0])
            + f'[metrics]\nport = {port}\ncertificate = "{server.certificate}"\n'
            f'private_key = "{server.key}"\ntrust = "{server.trust}"\n'
            'client_certificates = "required"\n'
        )
        cluster.start()
        context = ssl.create_default_context(cafile=str(cluster.authority.trust))
        context.load_cert_chain(monitor.certificate, monitor.key)
        url = f"https://127.0.0.1:{port}/metrics"
        with urllib.request.urlopen(url, context=context, timeout=TIMEOUT_S) as answer:
            text = answer.read().decode()
        left = {
            line.split('"')[1]: float(line.rpartition(" ")[2])
            for line in text.splitlines()
            if line.startswith("strandline_certificate_seconds_left{")
        }
        assert left.keys() == {"rpc", "metrics"}
        assert 19 < left["metrics"] / 86_400 <= 20 < left["rpc"] / 86_400
        broker.wait_logged("[metrics]: the certificate expires in 19 days: renew it")
