"""Real clusters for real clients: broker processes on loopback, started by the command that people
use."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.integration.ports import port_base

COMMAND = str(Path(sys.executable).parent / "strandline")
COMMAND_TIMEOUT_S = 120


@dataclass
class DevCluster:
    """A running development cluster, and the commands on it."""

    directory: Path
    bootstrap: str
    brokers: dict[int, dict[str, object]]

    def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run the `strandline` command."""
        return run(*arguments, check=check)

    def dev(self, *arguments: str) -> None:
        """Run `strandline dev ...` on this cluster."""
        run("dev", *arguments, "--dir", str(self.directory))

    def kill(self, broker: int) -> None:
        """kill -9."""
        self.dev("broker", "kill", str(broker))

    def start(self, broker: int) -> None:
        """Start a broker that was killed."""
        self.dev("broker", "start", str(broker))

    def start_all(self) -> None:
        """Start every broker that is not running; returns when all serve."""
        self.dev("start")


def run(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run the `strandline` command; its output is in the failure."""
    done = subprocess.run(
        [COMMAND, *arguments], capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S
    )
    if check and done.returncode != 0:
        raise AssertionError(f"strandline {' '.join(arguments)}: {done.stdout}\n{done.stderr}")
    return done


ALARMS = ("--set", "security.webhook_hosts=127.0.0.1,alarms.example")
"""Where brokers may post alarms."""


def start_cluster(directory: Path, *, regions: str, options: tuple[str, ...] = ()) -> DevCluster:
    """Start a cluster and wait until every broker serves."""
    where = ("--dir", str(directory), "--port-base", port_base())
    started = run("dev", "start", *where, "--regions", regions, "--json", *options)
    told = json.loads(started.stdout)
    return DevCluster(
        directory=directory,
        bootstrap=told["bootstrap"],
        brokers={broker["id"]: broker for broker in told["brokers"]},
    )


def stop_cluster(cluster: DevCluster) -> None:
    """Stop the brokers; what they logged as errors fails the test."""
    cluster.dev("stop")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevCluster]:
    """Three brokers in three regions, shared by all tests that break nothing."""
    cluster = start_cluster(tmp_path_factory.mktemp("cluster"), regions="east=1,west=1,south=1")
    yield cluster
    stop_cluster(cluster)


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[DevCluster]:
    """Three brokers for one test that breaks them."""
    cluster = start_cluster(tmp_path / "cluster", regions="east=1,west=1,south=1")
    yield cluster
    stop_cluster(cluster)


@pytest.fixture
def five(tmp_path: Path) -> Iterator[DevCluster]:
    """Five brokers in three regions, for one test that changes them."""
    cluster = start_cluster(tmp_path / "cluster", regions="east=2,west=2,south=1", options=ALARMS)
    yield cluster
    stop_cluster(cluster)


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """A topic name of the test's own."""
    return f"t-{os.getpid()}-{abs(hash(request.node.nodeid)) % 10**8}-{time.monotonic_ns() % 10**6}"


def wait_until(condition: Callable[[], bool], *, what: str, timeout_s: float = 60) -> None:
    """Wait for a condition; a bound, not a measurement."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s} s: {what}")
        time.sleep(0.05)
