"""Clusters to measure: Strandline's own development cluster, and Apache Kafka from Maven Central as
the peer.

Why:    a figure means something only beside the peer's, on the same machine, in the same run.
How:    both are started, asked for their processes, and stopped the same way. Kafka comes as jars
        from a Maven repository (`kafka/get-kafka`) and is run by `kafka/cluster`; without `java`
        and `mvn` the peer is left out.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

STRANDLINE = str(Path(sys.executable).parent / "strandline")
KAFKA_SCRIPTS = Path(__file__).parent / "kafka"
PORT_BASE = os.environ.get("STRANDLINE_BENCH_PORT_BASE", "")
"""The first Kafka port of clusters to measure; empty for the default of `dev start`."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster. `pids`: {broker id: process}."""

    name: str
    bootstrap: str
    pids: dict[int, int]
    directory: Path

    def log(self, broker: int) -> Path:
        """What one of Strandline's brokers has written to its log."""
        return self.directory / f"broker-{broker}" / "broker.log"

    def kill(self, broker: int) -> None:
        """kill -9 one broker."""
        os.kill(self.pids.pop(broker), 9)

    def start(self, broker: int) -> None:
        """Start one of Strandline's brokers that was killed; returns when it serves."""
        command("dev", "broker", "start", str(broker), "--dir", str(self.directory))


def command(*arguments: str) -> str:
    """Run `strandline`; its standard output."""
    done = subprocess.run([STRANDLINE, *arguments], check=True, capture_output=True, text=True)
    return done.stdout


@contextmanager
def strandline(
    directory: Path, *, regions: str, options: tuple[str, ...] = ()
) -> Iterator[Cluster]:
    """A development cluster, stopped and removed at the end."""
    if PORT_BASE:
        options = (*options, "--port-base", PORT_BASE)
    told = json.loads(
        command("dev", "start", "--dir", str(directory), "--regions", regions, "--json", *options)
    )
    try:
        yield Cluster(
            name="strandline",
            bootstrap=told["bootstrap"],
            pids={broker["id"]: broker["pid"] for broker in told["brokers"]},
            directory=directory,
        )
    finally:
        command("dev", "stop", "--dir", str(directory))


def has_kafka() -> bool:
    """Whether the peer can be started here."""
    return all(shutil.which(command) for command in ("java", "mvn"))


@contextmanager
def kafka(directory: Path, *, brokers: int, configs: tuple[str, ...] = ()) -> Iterator[Cluster]:
    """Apache Kafka with its defaults (acks=all does not wait for a flush), stopped at the end.

    `configs`: `key=value` of its brokers."""
    work = str(directory)
    subprocess.run([KAFKA_SCRIPTS / "get-kafka", work], check=True, capture_output=True)
    up = subprocess.run(
        [
            *(KAFKA_SCRIPTS / "cluster", "up", work, "--brokers", str(brokers)),
            *(word for config in configs for word in ("--set", config)),
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    told = json.loads(up.stdout)
    try:
        yield Cluster(
            name="kafka",
            bootstrap=told["bootstrap"],
            pids=_pids_of(directory),
            directory=directory,
        )
    finally:
        subprocess.run([KAFKA_SCRIPTS / "cluster", "down", work], check=True, capture_output=True)


def _pids_of(directory: Path) -> dict[int, int]:
    """The Java processes that name this directory on their command line."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b"java" in line.split(b"\0")[0] and str(directory).encode() in line:
                found.append(int(entry.name))
    return dict(enumerate(sorted(found), start=1))


def memory_mb(pid: int) -> float:
    """Resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0
