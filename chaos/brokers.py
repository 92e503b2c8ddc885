"""The five brokers: `strandline serve` on its host, killed, stopped, continued and started again.

Why:    a broker that ends by itself is a failure, unless its disk was full when it started: then it
        reports that and ends, and the run starts it again.
Owns:   the processes; the directory `broker-N` of each, with configuration, log and data."""

import os
import re
import signal
import sys
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from chaos import processes
from chaos.access.files import SecureFiles
from chaos.hosts import BROKERS, KAFKA_PORT, RPC_PORT, Host, broker_host
from chaos.mixed_releases import MixedReleases
from chaos.network import Network

STRANDLINE = str(Path(sys.executable).with_name("strandline"))
END_TIMEOUT_S = 30
RESTART_INTERVAL_S = 1.0
LEADS = r'"(?P<partition>[^\s"]+-\d+): leads epoch (?P<epoch>\d+)"'


class Led(NamedTuple):
    """A broker said that it leads a partition ("orders-3") in an epoch."""

    broker: int
    partition: str
    epoch: int


class Brokers:
    """See the module. `complaints`: what brokers did that they must not do by themselves."""

    def __init__(
        self,
        work: Path,
        network: Network,
        *,
        frugal: int,
        secure: SecureFiles | None = None,
        releases: MixedReleases | None = None,
    ) -> None:
        """`frugal`: the broker that sets no space aside, 0 for none; `secure`: None for none.
        `releases`: None if all run these sources."""
        self.complaints: list[str] = []
        self._work = work
        self._network = network
        self._releases = releases
        self._running: dict[int, processes.Process] = {}
        """{broker: its process}"""
        self._ended_at: dict[int, float] = {}
        """When a broker ended by itself because its disk was full."""
        for host in BROKERS:
            self.directory(host.broker).mkdir(exist_ok=True)
            text = self._render(host, preallocates=host.broker != frugal, secure=secure)
            self._config(host.broker).write_text(text)

    def directory(self, number: int) -> Path:
        """Everything of one broker."""
        return self._work / f"broker-{number}"

    def data(self, number: int) -> Path:
        """Its data directory."""
        return self.directory(number) / "data"

    def data_directories(self) -> dict[int, Path]:
        """{broker: its data directory}"""
        return {host.broker: self.data(host.broker) for host in BROKERS}

    def start(self, numbers: Collection[int]) -> None:
        """Start brokers that do not run."""
        for number in numbers:
            host = broker_host(number)
            self._running[number] = processes.start(
                [
                    *self._network.command(host),
                    *(STRANDLINE, "serve", *self._options, "--config", str(self._config(number))),
                ],
                log=self.log(number),
                environment=self._releases.environment_of(number) if self._releases else None,
            )

    def log(self, number: int) -> Path:
        """What it says."""
        return self.directory(number) / "broker.log"

    def count_in_logs(self, pattern: str) -> int:
        """How many lines of all brokers have it, a regular expression."""
        return sum(1 for _ in self._in_logs(pattern))

    def leaders(self) -> list[Led]:
        """Who said of itself that it leads what, and in which epoch, since it was first started."""
        return [
            Led(number, found["partition"], int(found["epoch"]))
            for number, found in self._in_logs(LEADS)
        ]

    def _in_logs(self, pattern: str) -> Iterator[tuple[int, re.Match[str]]]:
        """(broker, match) of every line in which it is found."""
        wanted = re.compile(pattern)
        for host in BROKERS:
            for line in self.log(host.broker).read_text(errors="replace").splitlines():
                if found := wanted.search(line):
                    yield host.broker, found

    def kill(self, numbers: Collection[int]) -> None:
        """kill -9."""
        for number in numbers:
            self._ended_at.pop(number, None)
        doomed = [number for number in numbers if number in self._running]
        processes.kill([self._running[number] for number in doomed])
        for number in doomed:  # Not before: who is forgotten here is not killed at an interrupt.
            del self._running[number]

    def pause(self, numbers: Collection[int]) -> None:
        """SIGSTOP."""
        self._signal(numbers, signal.SIGSTOP)

    def resume(self, numbers: Collection[int]) -> None:
        """SIGCONT."""
        self._signal(numbers, signal.SIGCONT)

    def _signal(self, numbers: Collection[int], number: signal.Signals) -> None:
        for broker in numbers:
            process = self._running.get(broker)
            if process is not None and process.poll() is None:
                os.kill(process.pid, number)

    def watch(self, *, small_disk: int) -> None:
        """Notice brokers that ended by themselves, and start them again; only a full disk is a good
        reason."""
        for number, process in list(self._running.items()):
            if process.poll() is not None:
                del self._running[number]
                self._ended_at[number] = time.monotonic()
                if number != small_disk or not self._says_full(number):
                    self.complaints.append(
                        f"broker {number} ended by itself with code {process.returncode}: "
                        f"{self._last_words(number)}"
                    )
        now = time.monotonic()
        due = [n for n, at in self._ended_at.items() if now - at > RESTART_INTERVAL_S]
        for number in due:
            del self._ended_at[number]
        self.start(due)

    def stop(self) -> None:
        """SIGTERM to all; one that does not end in time has broken a promise."""
        running = self._running
        processes.ask_to_end(running.values())
        for number, process in running.items():
            if not processes.wait_ended([process], timeout_s=END_TIMEOUT_S):
                self.complaints.append(
                    f"broker {number} did not end within {END_TIMEOUT_S} s of SIGTERM"
                )
            elif process.returncode:
                self.complaints.append(
                    f"broker {number} ended with code {process.returncode}: "
                    f"{self._last_words(number)}"
                )
        self.end()

    def check_ends(self, *, small_disk: int) -> None:
        """Complain of ends that only logs tell of, once all have ended."""

    def end(self) -> None:
        """None is left."""
        processes.kill(self._running.values())
        self._running.clear()
        self._ended_at.clear()

    @property
    def _options(self) -> tuple[str, ...]:
        """More options of `strandline serve`."""
        return ()

    def _render(self, host: Host, *, preallocates: bool, secure: SecureFiles | None) -> str:
        return render_config(host, self.data(host.broker), preallocates=preallocates, secure=secure)

    def _config(self, number: int) -> Path:
        return self.directory(number) / "broker.toml"

    def _says_full(self, number: int) -> bool:
        return "No space left" in self._last_words(number)

    def _last_words(self, number: int) -> str:
        lines = self.log(number).read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "no word"


def render_config(
    host: Host, data: Path, *, preallocates: bool, secure: SecureFiles | None = None
) -> str:
    """The configuration of one broker, in TOML: what has to be given, and nothing else."""
    seeds = ", ".join(f'"{one.broker}@{one.address}:{RPC_PORT}"' for one in BROKERS)
    return (
        f'[broker]\nid = {host.broker}\ndata_directory = "{data}"\n\n'
        f'[broker.labels]\nregion = "{host.region}"\n\n'
        f'[cluster]\nid = "chaos"\nseeds = [{seeds}]\n\n'
        f"{_open_sections(host) if secure is None else secure.sections(host)}"
        f"[storage]\npreallocate = {str(preallocates).lower()}\n"
    )


def _open_sections(host: Host) -> str:
    """Ports without any protection."""
    return (
        f'[listener]\nkafka_host = "{host.address}"\nkafka_port = {KAFKA_PORT}\n\n'
        f'[rpc]\nhost = "{host.address}"\nport = {RPC_PORT}\n\n'
        "[security]\ninsecure = true\n\n"
    )
