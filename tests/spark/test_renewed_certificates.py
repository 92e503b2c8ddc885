"""A stream goes on while the certificates on both sides, and their authority, are replaced.

How:    a broker that asks for certificates, and a stream with one, each by files whose content
        changes while both run. At last only the second authority counts, and the broker restarts.
Source: docs/pipelines/source.md, "TLS and logins"; decision 0069."""

import os
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.integration.conftest import COMMAND, wait_until
from tests.integration.secure_cluster import SecureBroker, secure_cluster, tls_listener, wait
from tests.spark.jobs import JOB_TIMEOUT_S, SLOW_WORKER, STARTS_MAX

from strandline.security.authority import Authority, Files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
TOPIC = "sealed"
TAKEN = "new TLS handshakes use the changed files"
REQUIRED = 'client_certificates = "required"'
RULES = '[access]\nenforce_rules = true\nsuper_users = ["User:CN=admin"]\n'
SHARE = 10


def put(target: Path, *sources: Path) -> None:
    """Give a file other content, at once."""
    scratch = target.with_name("new")
    scratch.write_bytes(b"".join(one.read_bytes() for one in sources))
    scratch.chmod(0o600)
    os.replace(scratch, target)


class Side:
    """The files of the broker or of a client, whose content changes."""

    def __init__(self, directory: Path, name: str, authority: Authority) -> None:
        directory.mkdir()
        self.name = name
        self.files = Files(*(directory / one for one in ("own.pem", "own.key", "trust.pem")))
        self.trust(authority)
        self.renew(authority)

    def trust(self, *authorities: Authority) -> None:
        put(self.files.trust, *(one.trust for one in authorities))

    def renew(self, authority: Authority) -> None:
        """A new certificate with a new key. For a moment they do not fit: brokers and clients go on
        with the last ones that do."""
        made = authority.issue(self.name)
        put(self.files.key, made.key)
        put(self.files.certificate, made.certificate)

    def config(self, bootstrap: str) -> Path:
        """A client's file that names the others."""
        path = self.files.certificate.with_name("client.conf")
        path.write_text(
            f"bootstrap.servers={bootstrap}\nsecurity.protocol=SSL\n"
            f"ssl.ca.location={self.files.trust}\nssl.key.location={self.files.key}\n"
            f"ssl.certificate.location={self.files.certificate}\n"
        )
        return path


class Sealed:
    """The broker, the administrator and the application, each with its files."""

    def __init__(self, directory: Path, broker: SecureBroker, authority: Authority) -> None:
        self.broker = broker
        self.sides = [Side(directory / one, one, authority) for one in ("server", "admin", "app")]
        server, self._admin, self._app = self.sides
        broker.sections = tls_listener("MUTUAL", broker.ports[0], server.files, REQUIRED) + RULES

    def trust(self, *authorities: Authority) -> None:
        """Give all sides these authorities; returns when the broker uses them."""
        before = self.broker.log.count(TAKEN)
        for one in self.sides:
            one.trust(*authorities)
        self.broker.wait_logged(TAKEN, count=before + 1)

    def renew(self, authority: Authority) -> None:
        """Give all sides new certificates; returns when the broker shows its own."""
        for one in self.sides:
            one.renew(authority)
        expected = self.sides[0].files.certificate.read_text()
        place = ("127.0.0.1", self.broker.ports[0])
        wait(
            lambda: ssl.get_server_certificate(place).split() == expected.split(),
            lambda: self.broker.log,
        )

    def restart(self) -> None:
        """Stop and start the broker: every connection is new afterwards."""
        self.broker.stop()
        self.broker.start([f"1@127.0.0.1:{self.broker.rpc_port}"])
        self.broker.wait_serving(2)

    def run(self, *words: str, text: str = "") -> None:
        command = [COMMAND, *words, "--client-config", str(self._config_of(self._admin))]
        subprocess.run(command, input=text, text=True, timeout=120, check=True)

    def fill(self, first: int) -> None:
        numbers = "".join(f"{n}\n" for n in range(first, first + SHARE))
        self.run("produce", TOPIC, text=numbers)

    @property
    def app_config(self) -> Path:
        return self._config_of(self._app)

    def _config_of(self, side: Side) -> Path:
        return side.config(f"127.0.0.1:{self.broker.ports[0]}")


class Stream:
    """A stream into a directory, which is never started again but if its Python worker was slow to
    start."""

    def __init__(self, spark: "SparkSession", config: Path, directory: Path) -> None:
        self._spark, self._config, self._directory = spark, config, directory
        self._starts = 0
        self.query = self._start()

    def wait_for(self, count: int) -> None:
        """Until it has written the numbers below `count`, each once."""
        wait_until(lambda: self._has(count), what=f"{count} rows", timeout_s=JOB_TIMEOUT_S)
        assert self.numbers() == list(range(count))

    def numbers(self) -> list[int]:
        out = self._directory / "out"
        if not (out / "_spark_metadata").exists():
            return []
        found = self._spark.read.schema("n STRING").parquet(str(out)).collect()
        return sorted(int(row.n) for row in found)

    def _has(self, count: int) -> bool:
        if not self.query.isActive:
            error = self.query.exception()
            assert SLOW_WORKER in str(error) and self._starts < STARTS_MAX, error
            self.query = self._start()
        return len(self.numbers()) >= count

    def _start(self) -> "StreamingQuery":
        self._starts += 1
        read = self._spark.readStream.format("strandline").option("subscribe", TOPIC)
        read = read.option("clientConfig", str(self._config))
        frame = read.option("startingOffsets", "earliest").load()
        sink = frame.selectExpr("CAST(value AS STRING) AS n").writeStream.format("parquet")
        sink = sink.option("path", str(self._directory / "out"))
        sink = sink.option("checkpointLocation", str(self._directory / "checkpoint"))
        return sink.trigger(processingTime="500 milliseconds").start()


@pytest.fixture
def sealed(tmp_path: Path) -> Iterator[Sealed]:
    with secure_cluster(tmp_path / "cluster") as cluster:
        (broker,) = cluster.brokers.values()
        found = Sealed(tmp_path, broker, cluster.authority)
        cluster.start()
        yield found


def test_a_running_stream_takes_new_certificates_and_a_new_authority(
    spark: "SparkSession", sealed: Sealed, tmp_path: Path
) -> None:
    first, second = Authority(tmp_path / "cluster/ca"), Authority(tmp_path / "second")
    sealed.run("topic", "create", TOPIC, "-p", "1", "-r", "1")
    rule = ("--allow-principal", "User:CN=app", "--operation", "read", "--topic", TOPIC)
    sealed.run("acl", "create", *rule)
    sealed.fill(0)
    stream = Stream(spark, sealed.app_config, tmp_path)
    try:
        stream.wait_for(SHARE)
        sealed.renew(first)
        sealed.fill(SHARE)
        stream.wait_for(2 * SHARE)
        sealed.trust(first, second)
        sealed.renew(second)
        sealed.trust(second)
        sealed.fill(2 * SHARE)
        stream.wait_for(3 * SHARE)
        sealed.restart()
        sealed.fill(3 * SHARE)
        stream.wait_for(4 * SHARE)
    finally:
        stream.query.stop()
