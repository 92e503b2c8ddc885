"""A lake job reads a cluster with TLS and logins by either source, a user's job does so on a Spark
cluster, and neither shows a secret: no table, log of events, page, plan, command line or error.

Source: docs/pipelines/lake.md, "TLS and logins"; decision 0049."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.conftest import DevCluster, start_cluster, stop_cluster
from tests.spark import submitted_secrets
from tests.spark.jobs import CLIENT_TIMEOUT_S, Cluster, Jobs, read_json
from tests.spark.lakes import rows
from tests.spark.standalone import spark_command, standalone_cluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
TOPIC = "behind-tls"
EVENTS = ("spark.eventLog.enabled=true", "spark.eventLog.compress=false")


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevCluster]:
    directory = tmp_path_factory.mktemp("secure") / "cluster"
    cluster = start_cluster(directory, regions="east=1,west=1", options=("--secure",))
    admin = AdminClient(client(cluster))
    admin.create_topics([NewTopic(TOPIC, 2, 2)])[TOPIC].result(CLIENT_TIMEOUT_S)
    produce(cluster, range(50))
    yield cluster
    stop_cluster(cluster)


def file_of(cluster: DevCluster, name: str = "app.conf") -> Path:
    return cluster.directory / "secure" / name


def client(cluster: DevCluster) -> dict[str, str]:
    """What librdkafka needs."""
    return dict(one.split("=", 1) for one in file_of(cluster).read_text().splitlines())


def produce(cluster: DevCluster, numbers: range) -> None:
    producer = Producer({**client(cluster), "acks": "all"})
    for n in numbers:
        producer.produce(TOPIC, b'{"n":%d}' % n, key=b"%d" % n)
    assert producer.flush(CLIENT_TIMEOUT_S) == 0


class CommandLines:
    """Whether a text is on the command line, or in the environment, of a process of this user."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()
        self._is_over = threading.Event()
        self._found: set[str] = set()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> set[str]:
        self._thread.start()
        return self._found

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._is_over.wait(0.2):
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    if self._secret in (process / "cmdline").read_bytes():
                        self._found.add((process / "cmdline").read_text())
                except OSError:
                    continue


def shown(directory: Path) -> list[bytes]:
    """All that files below a directory hold."""
    return [path.read_bytes() for path in directory.rglob("*") if path.is_file()]


@pytest.mark.parametrize("source", ["strandline", "kafka"])
def test_a_lake_job_reads_over_tls_with_a_login_and_shows_no_secret(
    secure: DevCluster, jobs: Jobs, tmp_path: Path, source: str
) -> None:
    password = client(secure)["sasl.password"]
    table, scratch = tmp_path / "lake", tmp_path / "scratch"
    scratch.mkdir()
    (tmp_path / "events").mkdir()
    (tmp_path / "n.ddl").write_text("n INT")
    events = (f"spark.eventLog.dir=file://{tmp_path}/events", *EVENTS)
    lake = (
        *("lake", TOPIC, str(table), "--source", source, "--json", "--name", f"lake-{source}"),
        *("--schema", str(tmp_path / "n.ddl"), "--client-config", str(file_of(secure))),
        *(word for one in events for word in ("--conf", one)),
    )
    mine = Jobs(Cluster(secure.bootstrap), jobs.java, jobs.jars, scratch)
    with CommandLines(password) as seen:
        told = mine.run(*lake)
    before = read_json(told)["table_rows"]
    assert before == len(rows(table, "value")) >= 50
    assert not seen
    kept = shown(tmp_path)
    assert any(b"SparkListenerEnvironmentUpdate" in one for one in kept)
    assert not any(password.encode() in one for one in [*kept, told.encode()])
    # The job's progress is in a group, as over a plain connection.
    admin = AdminClient(client(secure))
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(f"lake-{source}")])
    committed = asked[f"lake-{source}"].result(CLIENT_TIMEOUT_S).topic_partitions
    assert sum(one.offset for one in committed) == before

    wrong = tmp_path / "wrong.conf"
    wrong.write_text(file_of(secure).read_text().replace(password, "another-secret"))
    refused = mine.run(*("lake", TOPIC, str(table), "--client-config", str(wrong)), fails=True)
    assert refused.count("error: ") == 1 and "the login of user 'app' failed" in refused
    assert "another-secret" not in refused


def test_properties_of_kafkas_own_client_reach_the_cluster_too(
    secure: DevCluster, jobs: Jobs, tmp_path: Path
) -> None:
    lake = ("lake", TOPIC, str(tmp_path / "lake"), "--bootstrap", secure.bootstrap, "--json")
    lines = [
        one
        for one in file_of(secure, "app.properties").read_text().splitlines()
        if not one.startswith("bootstrap.servers")
    ]
    (tmp_path / "client.properties").write_text("\n".join(lines))
    words = ("--source", "kafka", "--kafka-config", str(tmp_path / "client.properties"))
    told = read_json(jobs.run(*lake, *words))["records"]
    assert isinstance(told, int) and told >= 50


def test_a_job_on_a_cluster_finds_the_files_that_spark_submit_brings_and_shows_no_secret(
    secure: DevCluster, jobs: Jobs, tmp_path: Path
) -> None:
    """The configuration names a file that is nowhere: each machine has the one of its name."""
    given = client(secure)
    config, login, found = tmp_path / "of-app.conf", tmp_path / "login", tmp_path / "found"
    found.mkdir()
    (tmp_path / "events").mkdir()
    config.write_text(
        "\n".join(f"{name}={text}" for name, text in given.items()).replace(
            given["ssl.ca.location"], "/no/such/ca.pem"
        )
    )
    login.write_text(
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="app" password="{given["sasl.password"]}";'
    )
    conf = {
        "spark.ui.enabled": "true",
        **dict(one.split("=") for one in EVENTS),
        "spark.eventLog.dir": f"file://{tmp_path}/events",
        "spark.executor.memory": "512m",
        "spark.sql.warehouse.dir": f"{tmp_path}/warehouse",
        "spark.sql.catalogImplementation": "in-memory",
    }
    (tmp_path / "spark").mkdir()
    with standalone_cluster(tmp_path / "spark", jobs.environment) as url:
        done = spark_command(
            *("spark-submit", "--master", url),
            *(word for name, text in conf.items() for word in ("--conf", f"{name}={text}")),
            *("--files", f"{config},{given['ssl.ca.location']}"),
            *(str(Path(submitted_secrets.__file__)), "/no/such/of-app.conf", secure.bootstrap),
            *(TOPIC, str(found), str(login), given["ssl.ca.location"]),
            environment=jobs.environment,
        )
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout.splitlines()[-1])
    assert first == second >= 50
    pages = shown(found)
    assert any(b"BatchScan" in one for one in pages) and len(pages) > 10
    events = shown(tmp_path / "events")
    assert any(b"SparkListenerSQLExecutionStart" in one for one in events)
    texts = [*pages, *events, done.stdout.encode(), done.stderr.encode()]
    texts += [path.read_bytes() for path in (tmp_path / "spark").glob("*.log")]
    assert not any(given["sasl.password"].encode() in one for one in texts)
