"""Real brokers with listeners, certificates and TLS among themselves, each from a file of its own:
`strandline dev` makes clusters on loopback without any of it."""

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.integration.conftest import COMMAND
from tests.integration.ports import free_ports

from strandline.security.authority import Authority, Files

START_S = 60
CLUSTER_ID = "secure"


def tls_listener(name: str, port: int, files: Files, *more: str) -> str:
    """A [[listener]] with TLS."""
    lines = [
        "[[listener]]",
        f'name = "{name}"',
        f'bind = "127.0.0.1:{port}"',
        'protocol = "SSL"',
        f'certificate = "{files.certificate}"',
        f'private_key = "{files.key}"',
        f'trust = "{files.trust}"',
        *more,
    ]
    return "\n".join(lines) + "\n"


def plain_listener(name: str, port: int) -> str:
    """A [[listener]] without TLS."""
    return f'[[listener]]\nname = "{name}"\nbind = "127.0.0.1:{port}"\n'


@dataclass
class SecureBroker:
    """One broker: its file, its process, its log."""

    id: int
    directory: Path
    rpc_port: int
    ports: list[int]
    sections: str = ""
    rpc: str = ""
    process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """What it has logged."""
        return (self.directory / "broker.log").read_text()

    def start(self, seeds: Sequence[str]) -> None:
        """Write its file and start its process."""
        self.directory.mkdir(exist_ok=True)
        listed = ", ".join(f'"{one}"' for one in seeds)
        path = self.directory / "broker.toml"
        path.write_text(
            f'[broker]\nid = {self.id}\ndata_directory = "{self.directory / "data"}"\n'
            f'[cluster]\nid = "{CLUSTER_ID}"\nseeds = [{listed}]\n'
            f"[rpc]\nport = {self.rpc_port}\n{self.rpc}\n{self.sections}\n"
        )
        with open(self.directory / "broker.log", "ab") as log:
            self.process = subprocess.Popen(
                [COMMAND, "serve", "--config", str(path)], stdout=log, stderr=log
            )

    def stop(self) -> None:
        """End it in order."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(START_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def wait_logged(self, text: str, *, count: int = 1) -> None:
        """Wait until it has logged a text so often."""
        wait(lambda: self.log.count(text) >= count, lambda: f"{text!r} is not in: {self.log}")

    def wait_serving(self, count: int = 1) -> None:
        """Wait until it serves clients, for the `count`th time."""
        self.wait_logged("serves Kafka clients on", count=count * max(1, self.listener_count))

    @property
    def listener_count(self) -> int:
        """The [[listener]] of its file."""
        return self.sections.count("[[listener]]")


@dataclass
class SecureCluster:
    """Brokers 1 to `count`, and the authority that certificates are of."""

    directory: Path
    authority: Authority
    brokers: dict[int, SecureBroker] = field(default_factory=dict)

    @property
    def seeds(self) -> list[str]:
        """The first voters of the controller."""
        return [f"{one.id}@127.0.0.1:{one.rpc_port}" for one in self.brokers.values()]

    def start(self) -> None:
        """Start all, and wait until all serve."""
        for one in self.brokers.values():
            one.start(self.seeds)
        for one in self.brokers.values():
            one.wait_serving()

    def bootstrap(self, listener: int) -> str:
        """The addresses of each broker's listener of this number."""
        return ",".join(f"127.0.0.1:{one.ports[listener]}" for one in self.brokers.values())


@contextmanager
def secure_cluster(
    directory: Path, *, count: int = 1, listeners: int = 1
) -> Iterator[SecureCluster]:
    """Brokers that are not started yet, with ports for so many listeners; stopped at the end."""
    cluster = SecureCluster(directory, Authority(directory / "ca"))
    ports = free_ports(count * (listeners + 1))
    for number in range(1, count + 1):
        own = [ports.pop() for _ in range(listeners + 1)]
        cluster.brokers[number] = SecureBroker(
            number, directory / f"broker-{number}", own[0], own[1:]
        )
    try:
        yield cluster
    finally:
        for one in cluster.brokers.values():
            one.stop()


def wait(condition: Callable[[], bool], what: Callable[[], str]) -> None:
    """Wait for a condition; a bound, not a measurement."""
    deadline = time.monotonic() + START_S
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)
