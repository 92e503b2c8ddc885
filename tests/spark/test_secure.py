"""A lake job reads a cluster behind TLS and a login by --source kafka, and shows no secret.

Source: docs/pipelines/lake.md, "TLS and logins"."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.conftest import COMMAND, wait_until
from tests.integration.ports import free_ports
from tests.spark.jobs import CLIENT_TIMEOUT_S, Cluster, Jobs, read_json
from tests.spark.lakes import rows
from tests.spark.tls_gate import PASSWORD, USER, make_certificate, open_gate

from strandline.cli.dev.plan import is_port_free

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

TOPIC = "behind-tls"


@dataclass(frozen=True)
class Gated:
    """A cluster of one broker behind the gate."""

    bootstrap: str
    ca: Path
    logins: list[str]

    @property
    def client(self) -> dict[str, str | int | float | bool]:
        """What librdkafka needs."""
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": USER,
            "sasl.password": PASSWORD,
            "ssl.ca.location": str(self.ca),
        }

    def properties(self, file: Path, password: str = PASSWORD) -> Path:
        """A file as Kafka's own tools take it."""
        login = "org.apache.kafka.common.security.plain.PlainLoginModule"
        file.write_text(
            "# The reader of the lake.\nsecurity.protocol=SASL_SSL\nsasl.mechanism: PLAIN\n"
            f'sasl.jaas.config={login} required \\\n  username="{USER}" password="{password}";\n'
            f"ssl.truststore.type=PEM\nssl.truststore.location={self.ca}\n"
        )
        return file


@pytest.fixture(scope="module")
def gated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gated]:
    directory = tmp_path_factory.mktemp("gated")
    gate, kafka, rpc = free_ports(3)
    file = directory / "broker.toml"
    file.write_text(f"""
[broker]
id = 1
data_directory = "{directory / "data"}"
[cluster]
seeds = ["1@127.0.0.1:{rpc}"]
[listener]
kafka_port = {kafka}
advertised_port = {gate}
[rpc]
port = {rpc}
""")
    certificate = make_certificate(directory)
    with (
        open_gate(gate, kafka, certificate) as logins,
        subprocess.Popen([COMMAND, "serve", "--config", str(file)]) as broker,
    ):
        try:
            wait_until(lambda: not is_port_free(kafka), what="the broker listens")
            found = Gated(f"127.0.0.1:{gate}", directory / "ca.pem", logins)
            admin = AdminClient(found.client)
            admin.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC].result(CLIENT_TIMEOUT_S)
            produce(found, range(50))
            yield found
        finally:
            broker.terminate()


def produce(gated: Gated, numbers: range) -> None:
    producer = Producer({**gated.client, "acks": "all"})
    for n in numbers:
        producer.produce(TOPIC, b'{"n":%d}' % n, key=b"%d" % n)
    assert producer.flush(CLIENT_TIMEOUT_S) == 0


def test_a_job_reads_over_tls_with_a_login_and_shows_no_secret(
    gated: Gated, jobs: Jobs, tmp_path: Path
) -> None:
    table, scratch = tmp_path / "lake", tmp_path / "scratch"
    scratch.mkdir()
    (tmp_path / "n.ddl").write_text("n INT")
    lake = (
        *("lake", TOPIC, str(table), "--bootstrap", gated.bootstrap, "--source", "kafka", "--json"),
        *("--schema", str(tmp_path / "n.ddl"), "--dead-letters", str(tmp_path / "dead")),
        *("--kafka-config", str(gated.properties(tmp_path / "client.properties"))),
    )
    mine = Jobs(Cluster(gated.bootstrap), jobs.java, jobs.jars, scratch)
    told = [mine.run(*lake)]
    assert read_json(told[0])["table_rows"] == 50
    produce(gated, range(50, 60))
    told.append(mine.run(*lake))
    assert read_json(told[1])["records"] == 10
    assert sorted(value["n"] for (value,) in rows(table, "value")) == list(range(60))
    assert set(gated.logins) == {"good"}
    # The job's progress is in a group, as over a plain connection.
    admin = AdminClient(gated.client)
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("lake-lake")])
    committed = asked["lake-lake"].result(CLIENT_TIMEOUT_S).topic_partitions
    assert sum(one.offset for one in committed) == 60

    wrong = gated.properties(tmp_path / "wrong.properties", password="another-secret")
    quick = ("--kafka", "default.api.timeout.ms=4000", "--kafka", "request.timeout.ms=2000")
    refused = mine.run(*lake[:-1], str(wrong), *quick, fails=True)
    assert refused.count("error: ") == 1 and "and --kafka-config" in refused
    assert "bad" in gated.logins
    log = refused.partition("Spark's log: ")[2].partition(")")[0]
    texts = [*told, refused, Path(log).read_text() if log else ""]
    kept = [path for path in tmp_path.rglob("*") if path.suffix != ".properties"]
    texts += [path.read_text(errors="replace") for path in kept if path.is_file()]
    for secret in (PASSWORD, "another-secret"):
        assert not any(secret in text for text in texts)
