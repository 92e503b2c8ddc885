"""Kafka Connect: a file source and a file sink, and a broker that is killed under them.

How:    a distributed worker copies the lines of one file through a topic to another file. A broker
        is killed and comes back, then the worker stops and goes on. No line may be missing at the
        end, and none may be there that was never written: Connect promises at least once."""

import json
import os
import socket
from functools import partial
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

from clients.cells import one_course
from clients.client import Client, Place
from clients.jvm import NEEDS, VERSION, java, prepare
from clients.observer import wait
from clients.program import Member, temporary
from clients.records import CellError

LINES = 200
TIMEOUT_S = 120
STOPPED_BY_SIGTERM = 143
"""Exit code of a JVM that SIGTERM ends; the worker has left its group before."""
VICTIM = 2


def check(place: Place) -> None:
    """Copy, with all that happens in between."""
    copying = _Copying(place)
    with copying.worker() as worker:
        copying.begin()
        copying.write("before")
        copying.wait_copied("with all brokers")
        place.cluster.kill(VICTIM)
        try:
            copying.write("during")
            copying.wait_copied(f"without broker {VICTIM}")
        finally:
            place.cluster.start(VICTIM)
        copying.write("after")
        copying.wait_copied("with all brokers again")
        worker.stop(code=STOPPED_BY_SIGTERM)
    copying.write("resumed")
    with copying.worker() as worker:
        copying.wait_copied("by the worker that went on")
        worker.stop(code=STOPPED_BY_SIGTERM)
    copying.judge()


class _Copying:
    """One source file, one topic, one sink file."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._name = place.prefix
        self._directory = temporary(place.directory, self._name)
        self._source = self._directory / "source.txt"
        self._sink = self._directory / "sink.txt"
        self._source.touch()
        self._written: list[str] = []
        self._port = _free_port()
        place.observer.create(self._name)

    def worker(self) -> "_Worker":
        """A worker; its configuration is in the directory."""
        told = {
            "bootstrap.servers": self._place.cluster.bootstrap,
            "group.id": f"{self._name}-workers",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "offset.flush.interval.ms": "1000",
            "heartbeat.interval.ms": "500",
            "scheduled.rebalance.max.delay.ms": "0",
            "listeners": f"http://127.0.0.1:{self._port}",
        }
        for kind in ("config", "offset", "status"):
            told[f"{kind}.storage.topic"] = f"{self._name}-{kind}"
            told[f"{kind}.storage.replication.factor"] = "3"
        path = self._directory / "worker.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in told.items()))
        return _Worker(path)

    def begin(self) -> None:
        """Make both connectors, as soon as the worker takes them."""
        made = {
            "source": {"connector.class": "FileStreamSource", "topic": self._name},
            "sink": {"connector.class": "FileStreamSink", "topics": self._name},
        }
        files = {"source": self._source, "sink": self._sink}
        for kind, config in made.items():
            told = {**config, "tasks.max": "1", "file": str(files[kind])}
            path = f"connectors/{self._name}-{kind}/config"
            wait(
                partial(self._put, path, told),
                what=f"a worker that takes the {kind}",
                timeout_s=TIMEOUT_S,
            )

    def write(self, when: str) -> None:
        """Append lines to the source."""
        lines = [f"{when} {number}" for number in range(LINES)]
        self._written += lines
        with self._source.open("a") as file:
            file.write("".join(f"{line}\n" for line in lines))

    def wait_copied(self, how: str) -> None:
        """Every line is in the sink."""
        wait(
            lambda: set(self._written) <= set(self._copied()),
            what=f"all lines copied {how}",
            timeout_s=TIMEOUT_S,
        )

    def judge(self) -> None:
        """Nothing foreign; offsets committed to the end; topics of the worker compacted."""
        if foreign := set(self._copied()) - set(self._written):
            raise CellError(f"lines that were never written: {sorted(foreign)[:3]}")
        found = {record.value for record in self._place.observer.read(self._name)}
        if found != set(self._written):
            raise CellError("the topic and the source file differ")
        committed = self._place.observer.committed(f"connect-{self._name}-sink")
        at = {partition: offset for (_, partition), offset in committed.items()}
        ends = self._place.observer.end_offsets(self._name)
        if any(end != at.get(number, 0) for number, end in ends.items()):
            raise CellError(f"the sink committed {at}; the topic ends at {ends}")
        for kind in ("config", "offset", "status"):
            policy = self._place.observer.config(f"{self._name}-{kind}", "cleanup.policy")
            if policy != "compact":
                raise CellError(f"the topic of the {kind} has cleanup.policy {policy}")

    def _copied(self) -> list[str]:
        return self._sink.read_text().splitlines() if self._sink.exists() else []

    def _put(self, path: str, told: dict[str, str]) -> bool:
        request = Request(
            f"http://127.0.0.1:{self._port}/{path}",
            data=json.dumps(told).encode(),
            headers={"Content-Type": "application/json"},
            method="PUT",
        )
        try:
            with urlopen(request, timeout=30) as answer:
                return int(answer.status) in (200, 201)
        except (URLError, OSError):
            return False


class _Worker:
    """A worker process, killed at the end if it did not stop before."""

    def __init__(self, configuration: Path) -> None:
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        self._argv = java(main, str(configuration))

    def __enter__(self) -> Member:
        self._member = Member(self._argv, os.environ)
        return self._member

    def __exit__(self, *_: object) -> None:
        self._member.kill()


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


CONNECT = Client(
    name="Kafka Connect",
    version=VERSION,
    tried="a distributed worker with a file source and a file sink; a broker killed and back, the"
    " worker stopped and resumed",
    cells=one_course(check),
    needs=NEEDS,
    prepare=prepare,
    downloads=True,
)
