"""Machines of several brokers each, as `strandline serve --cores` runs them, all on loopback."""

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.integration.conftest import COMMAND, DevCluster, wait_until
from tests.integration.pages import PAGES
from tests.integration.ports import BLOCKS, port_base
from tests.integration.ports import STEP as BLOCK

from strandline.cli.dev.plan import is_port_free

PAGE = "cores.md"
START_S = 90
STEP, KINDS = 20, 4
"""Ports between two kinds of ports of a machine; how many kinds there are."""
COUNT_MAX = 3
SPAN = STEP * KINDS * (COUNT_MAX + 1)


def example() -> str:
    """The file of the page."""
    return (PAGES / PAGE).read_text().split("```toml\n")[1].partition("```")[0]


@dataclass
class Machine:
    """One machine: its file as on the page, and its supervisor. `number`: 1 for the first;
    `seeds`: machines whose first broker is one; `text`: of its file, if it is not the page's."""

    number: int
    directory: Path
    base: int
    cores: int = 2
    first_id: int = 0
    seeds: tuple[int, ...] = (1,)
    text: str = ""
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def file(self) -> Path:
        """Its configuration."""
        return self.directory / f"node-{self.number}.toml"

    @property
    def data(self) -> Path:
        """Its data directory."""
        return self.directory / f"data-{self.number}"

    @property
    def log(self) -> str:
        """What its supervisor and its brokers have logged."""
        return (self.directory / f"node-{self.number}.log").read_text()

    @property
    def ids(self) -> list[int]:
        """Its brokers."""
        first = self.first_id or 100 * self.number
        return list(range(first, first + self.cores))

    @property
    def bootstrap(self) -> str:
        """Where clients reach its brokers."""
        first = self.port(0)
        return ",".join(f"127.0.0.1:{first + index}" for index in range(self.cores))

    @property
    def http_port(self) -> int:
        """The machine's own."""
        return self.port(2)

    def port(self, kind: int, number: int = 0) -> int:
        """Of its first broker: 0 for clients, 1 for brokers, 2 for HTTP, 3 for others."""
        return self.base + (KINDS * (number or self.number) + kind) * STEP

    def write(self) -> None:
        """Write its file."""
        if self.text:
            self.file.write_text(self.text)
            return
        text = example()
        seeds = ", ".join(f'"{100 * one}@127.0.0.1:{self.port(1, one)}"' for one in self.seeds)
        for old, new in (
            ("id = 100 ", f"id = {self.ids[0]} "),
            ("/var/lib/strandline", str(self.data)),
            ("0.0.0.0", "127.0.0.1"),
            ('advertised_host = "node-1"', 'advertised_host = "127.0.0.1"'),
            (text.partition("seeds = [")[2].partition("]")[0], seeds),
            ("node-1", f"node-{self.number}"),
            ("port = 33100", f"port = {self.port(1)}"),
            ("kafka_port = 9100", f"kafka_port = {self.port(0)}"),
            ("port = 9400", f"port = {self.http_port}"),
        ):
            assert old in text, old
            text = text.replace(old, new)
        self.file.write_text(text)

    def start(self) -> None:
        """Start its supervisor by the command of the page."""
        self.write()
        line = next(
            one for one in (PAGES / PAGE).read_text().splitlines()
            if one.startswith("strandline serve ")
        )  # fmt: skip
        typed = line.replace("strandline", COMMAND, 1)
        typed = typed.replace("/etc/strandline/node-1.toml", str(self.file))
        typed = typed.replace("--cores 2", f"--cores {self.cores}")
        with open(self.directory / f"node-{self.number}.log", "ab") as log:
            self.process = subprocess.Popen(typed.split(), stdout=log, stderr=log)

    def wait_ready(self) -> None:
        """Wait until all of its brokers serve."""
        assert self.process is not None
        wait_until(
            lambda: self.ask("/readyz")[0] == 200, what=f"{self.file.name} serves",
            timeout_s=START_S,
        )  # fmt: skip

    def ask(self, path: str) -> tuple[int, str]:
        """(status, text) of a page of the machine; status 0 if it does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}{path}") as found:
                return found.status, found.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def processes(self) -> dict[int, dict[str, object]]:
        """{broker: what the machine tells of its process}"""
        return {one["id"]: one for one in json.loads(self.ask("/v1/machine")[1])["brokers"]}

    def pids(self) -> list[int]:
        """The processes of its brokers."""
        return [int(str(one["pid"])) for one in self.processes().values()]

    def kill(self) -> None:
        """kill -9 of the supervisor."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.process = None

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it in order; returns the exit code."""
        if self.process is None:
            return 0
        self.process.send_signal(number)
        try:
            return self.process.wait(START_S)
        except subprocess.TimeoutExpired:
            self.process.kill()  # Its brokers end with it.
            raise
        finally:
            self.process = None


@contextmanager
def machines(
    directory: Path, count: int, *, seeds: tuple[int, ...] = (1,)
) -> Iterator[list[Machine]]:
    """Machines that are not started yet, stopped at the end."""
    assert count <= COUNT_MAX
    base = free_base()
    made = [Machine(number, directory, base, seeds=seeds) for number in range(1, count + 1)]
    try:
        yield made
    finally:
        for one in made:
            one.stop()


def free_base() -> int:
    """Where all ports of some machines are free: they do not look for others."""
    blocks = (int(port_base()) + shift for _ in range(BLOCKS) for shift in (0, BLOCK - SPAN))
    return next(one for one in blocks if all(map(is_port_free, range(one, one + SPAN))))


def cluster_of(some: Sequence[Machine]) -> DevCluster:
    """For commands."""
    return DevCluster(some[0].directory, ",".join(one.bootstrap for one in some), {})


def is_running(pid: int) -> bool:
    """Whether there is such a process, and no corpse."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
