"""Logins that end are run again on the same connection, by passwords here (KIP-368; decision 0069).

How:    one broker whose logins end after five seconds. Tokens are in test_token_logins.py."""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.conftest import COMMAND
from tests.integration.secure_cluster import SecureBroker, secure_cluster, tls_listener, wait

pytestmark = pytest.mark.integration

USER, PASSWORD = "admin", "correct horse battery"
TOPIC = "again"
TIMEOUT_S = 60
DELIVERY_MS = 50_000
LOGINS_MIN = 4


@dataclass
class Ending:
    """The broker, and a client's configuration file."""

    broker: SecureBroker
    client: Path

    @property
    def settings(self) -> dict[str, object]:
        """What librdkafka needs."""
        lines = self.client.read_text().splitlines()
        return dict(one.split("=", 1) for one in lines) | {"log_level": 0}

    def logins(self, client_id: str) -> int:
        """How often a client has logged in."""
        file = self.broker.directory / "audit.jsonl"
        lines = [json.loads(one) for one in file.read_bytes().splitlines()]
        found = [one for one in lines if one["event"] == "login" and one["client_id"] == client_id]
        assert all(one["result"] == "allowed" for one in found), found
        return len(found)


@pytest.fixture(scope="module")
def ending(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ending]:
    directory = tmp_path_factory.mktemp("ending")
    (directory / "password").write_text(PASSWORD)
    made = subprocess.run(
        [COMMAND, "user", "create", USER, "--password-file", "password", "--file", "users.jsonl"],
        cwd=directory,
        check=False,
    )
    assert made.returncode == 0
    with secure_cluster(directory / "cluster") as cluster:
        broker, files = cluster.brokers[1], cluster.authority.issue("broker-1")
        broker.sections = (
            tls_listener("LOGINS", broker.ports[0], files, "sasl_session_ms = 5000").replace(
                '"SSL"', '"SASL_SSL"'
            )
            + f'[access]\nenforce_rules = true\nsuper_users = ["User:{USER}"]\n'
            + f'users_file = "{directory / "users.jsonl"}"\n'
            + f'audit_file = "{broker.directory / "audit.jsonl"}"\n'
        )
        cluster.start()
        client = directory / "client.conf"
        client.write_text(
            f"bootstrap.servers={cluster.bootstrap(0)}\nsecurity.protocol=SASL_SSL\n"
            f"sasl.mechanism=SCRAM-SHA-512\nsasl.username={USER}\nsasl.password={PASSWORD}\n"
            f"ssl.ca.location={files.trust}\n"
        )
        found = Ending(broker, client)
        admin = AdminClient(found.settings)
        for future in admin.create_topics([NewTopic(TOPIC, 1, 1)]).values():
            future.result(TIMEOUT_S)
        yield found


def test_librdkafka_goes_on_with_the_same_connections(ending: Ending) -> None:
    connects: dict[str, int] = {}
    outcomes: list[object] = []

    def note(text: str) -> None:
        for name, one in json.loads(text)["brokers"].items():
            connects[name] = one["connects"]

    producer = Producer(
        {
            **ending.settings,
            "client.id": "producer",
            "statistics.interval.ms": 100,
            "stats_cb": note,
            "message.timeout.ms": DELIVERY_MS,
        }
    )

    def is_renewed() -> bool:
        producer.produce(TOPIC, b"x", on_delivery=lambda error, _: outcomes.append(error))
        assert producer.flush(TIMEOUT_S) == 0
        return ending.logins("producer") >= 2 * LOGINS_MIN

    wait(is_renewed, lambda: ending.broker.log)
    producer.poll(0.3)
    assert not any(outcomes)
    assert connects and max(connects.values()) == 1, connects
    assert "after the end of its login" not in ending.broker.log


def test_a_command_goes_on_with_the_same_connections(ending: Ending, tmp_path: Path) -> None:
    before, lines = ending.logins("strandline"), tmp_path / "lines"
    environment = os.environ | {"STRANDLINE_CLIENT_CONFIG": str(ending.client)}
    with (
        lines.open("wb") as out,
        subprocess.Popen(
            [COMMAND, "consume", TOPIC],
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment,
        ) as reading,
    ):
        try:
            wait(
                lambda: ending.logins("strandline") >= before + 2 + LOGINS_MIN,
                lambda: lines.read_text(),
            )
            producer = Producer({**ending.settings, "message.timeout.ms": DELIVERY_MS})
            producer.produce(TOPIC, b"after its first logins have ended")
            assert producer.flush(TIMEOUT_S) == 0
            wait(lambda: b"after its first" in lines.read_bytes(), lambda: lines.read_text())
            assert reading.poll() is None
        finally:
            reading.terminate()
    assert "after the end of its login" not in ending.broker.log
