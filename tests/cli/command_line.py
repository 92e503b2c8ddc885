"""Runs commands in this process, on a cluster in memory."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.client.fake_cluster import (
    FakeCluster,
    FakeTransport,
)

from strandline.cli.commands import (
    broker,
    broker_label,
    broker_removal,
    cluster_alter,
    cluster_status,
    consume,
    doctor_settings,
    drill_cancel,
    group,
    partition,
    produce,
    topic,
    zone,
)
from strandline.cli.commands import cluster_balance as balance_commands
from strandline.cli.main import main
from strandline.client.cluster import Client

Run = Callable[..., tuple[int, str, str]]


CONFIG = """
[broker]
id = 1
data_directory = "/data"

[cluster]
seeds = ["1@127.0.0.1:33145"]
"""


@pytest.fixture
def run(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Run:
    """Run a command line: exit code, standard output, standard error."""
    for name in list(os.environ):
        if name.startswith("STRANDLINE_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        code = ended.value.code
        assert isinstance(code, int) or code is None
        return code or 0, out.decode(), err.decode()

    return run


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """A cluster in memory that every command finds."""
    fake = FakeCluster()

    def open_client(bootstrap: str, timeout_s: float) -> Client:
        return Client(
            fake.bootstrap, timeout_ms=int(timeout_s * 1000), transport=FakeTransport(fake)
        )

    for module in (
        broker, broker_label, broker_removal, cluster_alter, balance_commands, topic, partition,
        produce, consume, group, zone, cluster_status, doctor_settings,
        drill_cancel,
    ):  # fmt: skip
        monkeypatch.setattr(module, "open_client", open_client)
    return fake


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bytes], None]]:
    """Give the next command its standard input."""
    kept = os.dup(0)

    def give(data: bytes) -> None:
        reader, writer = os.pipe()
        with open(writer, "wb") as pipe:
            pipe.write(data)
        os.dup2(reader, 0)
        os.close(reader)

    yield give
    os.dup2(kept, 0)
    os.close(kept)
