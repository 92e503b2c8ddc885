"""The source, the sink, a stream and a lake job on a cluster with TLS, logins or certificates, and
rules.

How:    one cluster of two brokers for the module, and the session that tests share: rules are
        taken away and given back, and a password changes, while a query lives. Certificates of
        clients are for a broker of its own: listeners of `strandline dev` take passwords.
Source: docs/pipelines/source.md, "TLS and logins"; decisions 0049 and 0069."""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from tests.integration.conftest import COMMAND, start_cluster, stop_cluster, wait_until
from tests.integration.secure_cluster import secure_cluster, tls_listener
from tests.spark.jobs import JOB_TIMEOUT_S, Jobs, started_again
from tests.spark.lakes import rows

from strandline.security.authority import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
READS = ("--allow-principal", "User:mia", "--operation", "read", "--topic")


@dataclass(frozen=True)
class Secured:
    """A cluster with rules; `config` logs in as mia, who may do nothing yet."""

    directory: Path
    config: Path

    def run(self, *words: str, text: str = "") -> str:
        """Standard output of the administrator's command."""
        done = subprocess.run(
            [COMMAND, *words],
            input=text,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env=os.environ | {"STRANDLINE_DEV_DIR": str(self.directory)},
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def become(self, password: str) -> None:
        """Give mia a password, in the cluster and in the file."""
        word = self.directory / "word"
        word.write_text(password)
        self.run("user", "create", "mia", "--password-file", str(word))
        lines = (self.directory / "secure" / "app.conf").read_text().splitlines()
        mine = {"sasl.username": "mia", "sasl.password": password}
        parts = [one.partition("=") for one in lines]
        scratch = self.config.with_name("new")
        scratch.write_text("\n".join(f"{name}={mine.get(name, old)}" for name, _, old in parts))
        scratch.replace(self.config)

    def java_words(self) -> dict[str, str]:
        """The same as options in the connector's spelling."""
        given = dict(one.split("=", 1) for one in self.config.read_text().splitlines())
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        user, password = given["sasl.username"], given["sasl.password"]
        return {
            "kafka.bootstrap.servers": given["bootstrap.servers"],
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "SCRAM-SHA-512",
            "kafka.sasl.jaas.config": f'{module} required username="{user}" password="{password}";',
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.location": given["ssl.ca.location"],
        }

    def fill(self, topic: str, first: int, count: int) -> None:
        """So many records of one number each."""
        numbers = "\n".join(str(n) for n in range(first, first + count))
        self.run("produce", topic, text=numbers + "\n")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("secured") / "cluster"
    cluster = start_cluster(directory, regions="east=1,west=1", options=("--secure",))
    found = Secured(directory, directory / "mia.conf")
    found.become("pa55-of-mia")
    yield found
    stop_cluster(cluster)


def refused(frame: "DataFrame") -> str:
    with pytest.raises(PySparkException) as raised:
        frame.count()
    return str(raised.value)


def test_batches_are_read_and_written_by_a_file_or_by_the_connectors_options(
    spark: "SparkSession", secured: Secured
) -> None:
    for topic in ("orders", "copies"):
        secured.run("topic", "create", topic, "-p", "1", "-r", "2")
    secured.fill("orders", 0, 5)
    by_file = {"clientConfig": str(secured.config)}
    frame = spark.read.format("strandline").options(**by_file, subscribe="orders").load()
    assert "User:mia may not read topic orders; to allow it: strandline acl" in refused(frame)
    secured.run("acl", "create", *READS, "orders")
    secured.run("acl", "create", *READS, "copies")
    frame = spark.read.format("strandline").options(**by_file, subscribe="orders").load()
    assert frame.count() == 5

    writer = frame.select("key", "value").write.format("strandline").mode("append")
    into = writer.options(**secured.java_words(), topic="copies")
    with pytest.raises(PySparkException, match="User:mia may not write topic copies; to allow"):
        into.save()
    secured.run("acl", "create", *READS[:3], "write", "--topic", "copies")
    into.save()
    words = secured.java_words()
    copies = spark.read.format("strandline").options(**words, subscribe="copies").load()
    assert sorted(int(row.value) for row in copies.collect()) == list(range(5))
    official = spark.read.format("kafka").options(**words, subscribe="copies").load()
    assert sorted(int(row.value) for row in official.collect()) == list(range(5))
    plans = official._jdf.queryExecution().toString() + copies._jdf.queryExecution().toString()
    assert "copies" in plans and "pa55" not in plans


def test_a_stream_goes_on_exactly_once_after_a_rule_was_gone_and_a_password_changed(
    spark: "SparkSession", secured: Secured, tmp_path: Path
) -> None:
    secured.run("topic", "create", "events", "-p", "2", "-r", "2")
    secured.run("acl", "create", *READS, "events")

    def run() -> list[int]:
        """Up to the end of now; all that the stream has written."""
        return started_again(attempt)

    def attempt() -> list[int]:
        stream = spark.readStream.format("strandline").option("subscribe", "events")
        stream = stream.option("clientConfig", str(secured.config))
        frame = stream.option("startingOffsets", "earliest").load()
        sink = frame.selectExpr("CAST(value AS STRING) AS n").writeStream.format("parquet")
        sink = sink.option("path", str(tmp_path / "out"))
        sink = sink.option("checkpointLocation", str(tmp_path / "checkpoint"))
        sink.trigger(availableNow=True).start().awaitTermination()
        rows = spark.read.schema("n STRING").parquet(str(tmp_path / "out")).collect()
        return sorted(int(row.n) for row in rows)

    secured.fill("events", 0, 10)
    assert run() == list(range(10))
    secured.fill("events", 10, 10)
    secured.run("acl", "delete", "--topic", "events")
    with pytest.raises(PySparkException, match="User:mia may not read topic events; to allow"):
        run()
    secured.run("acl", "create", *READS, "events")
    secured.become("another-pa55")
    assert run() == list(range(20))
    kept = [path for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()]
    assert kept and not any(b"pa55" in path.read_bytes() for path in kept)
    json.loads((tmp_path / "checkpoint" / "metadata").read_text())


def test_a_lake_job_whose_rule_goes_ends_with_one_line_and_later_goes_on_exactly_once(
    secured: Secured, jobs: Jobs, tmp_path: Path
) -> None:
    """The job may still see the topic: the driver plans a batch that executors may not read."""
    secured.run("topic", "create", "flights", "-p", "2", "-r", "2")
    secured.run("acl", "create", *READS, "flights")
    secured.run("acl", "create", *READS[:3], "describe", "--topic", "flights")
    secured.fill("flights", 0, 10)
    table = tmp_path / "lake"
    lake = ("lake", "flights", str(table), "--client-config", str(secured.config), "--upkeep", "0")

    def numbers() -> list[int]:
        filled = any((table / "_delta_log").glob("*.json"))
        return sorted(int(value) for (value,) in rows(table, "value")) if filled else []

    with jobs.start(*lake, "--continuous") as process:
        try:
            wait_until(
                lambda: len(numbers()) == 10 or process.poll() is not None,
                what="the first records are in the table",
                timeout_s=JOB_TIMEOUT_S,
            )
            mine = ("--principal", "User:mia", "--operation", "read")
            secured.run("acl", "delete", *mine, "--topic", "flights")
            secured.fill("flights", 10, 10)
            _, told = process.communicate(timeout=JOB_TIMEOUT_S)
        finally:
            process.kill()
    assert process.returncode == 1, told
    assert told.count("error: ") == 1 and "Traceback" not in told, told
    refusal = told.splitlines()[-1]
    assert refusal.startswith("error: ") and "User:mia may not read topic flights; to" in refusal
    assert numbers() == list(range(10))
    secured.run("acl", "create", *READS, "flights")
    jobs.run(*lake)
    assert numbers() == list(range(20))


def test_batches_are_read_and_written_with_a_certificate_instead_of_a_login(
    spark: "SparkSession", tmp_path: Path
) -> None:
    with secure_cluster(tmp_path / "mutual") as cluster:
        (broker,) = cluster.brokers.values()
        server, admin, app = map(cluster.authority.issue, ("server", "admin", "app"))
        required = 'client_certificates = "required"'
        broker.sections = (
            tls_listener("MUTUAL", broker.ports[0], server, required)
            + '[access]\nenforce_rules = true\nsuper_users = ["User:CN=admin"]\n'
        )
        cluster.start()

        def config_of(files: Files) -> Path:
            config = files.certificate.with_suffix(".conf")
            config.write_text(
                f"bootstrap.servers={cluster.bootstrap(0)}\nsecurity.protocol=SSL\n"
                f"ssl.ca.location={files.trust}\nssl.key.location={files.key}\n"
                f"ssl.certificate.location={files.certificate}\n"
            )
            return config

        def run(*words: str, text: str = "") -> None:
            command = [COMMAND, *words, "--client-config", str(config_of(admin))]
            subprocess.run(command, input=text, text=True, timeout=120, check=True)

        run("topic", "create", "sealed", "-p", "1", "-r", "1")
        run("produce", "sealed", text="1\n2\n3\n")
        by_file = {"clientConfig": str(config_of(app))}
        source = spark.read.format("strandline").options(**by_file, subscribe="sealed")
        told = refused(source.load())
        assert "User:CN=app may not read topic sealed; to allow it: strandline acl" in told
        for operation in ("read", "write"):
            rule = ("--allow-principal", "User:CN=app", "--operation", operation)
            run("acl", "create", *rule, "--topic", "sealed")
        frame = source.load().select("key", "value")
        frame.write.format("strandline").mode("append").options(**by_file, topic="sealed").save()

        both = app.certificate.with_name("both.pem")
        both.write_bytes(app.key.read_bytes() + app.certificate.read_bytes())
        words = {
            "kafka.bootstrap.servers": cluster.bootstrap(0),
            "kafka.security.protocol": "SSL",
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.location": str(app.trust),
            "kafka.ssl.keystore.type": "PEM",
            "kafka.ssl.keystore.location": str(both),
        }
        for name in ("strandline", "kafka"):
            found = spark.read.format(name).options(**words, subscribe="sealed").load()
            assert sorted(int(row.value) for row in found.collect()) == [1, 1, 2, 2, 3, 3]
