"""The cluster, through the `strandline` command line and nothing else: what you could type too."""

import json
import subprocess
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

STRANDLINE = str(Path(sys.executable).with_name("strandline"))
ROUND_TRIPS = "east-west=30,east-south=80,west-south=90"
PORT_BASE = 27_092
"""Apart from the ports of the cluster that `strandline dev start` makes unless told otherwise."""
METRICS_PORT = 27_400
"""Of broker 1; each next broker has the next port."""
READER_PORT_BASE = 27_500
"""Of the second cluster."""
TIMEOUT_S = 90


class DemoError(Exception):
    """Something that the demo needs did not work; one line."""


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker process."""

    id: int
    address: str
    region: str
    pid: int | None
    serving: bool


@dataclass(frozen=True, slots=True)
class Cluster:
    """The local cluster whose data lies in `directory`."""

    directory: Path
    bootstrap: str
    brokers: Mapping[int, Broker]

    @property
    def regions(self) -> list[str]:
        return sorted({broker.region for broker in self.brokers.values()})

    def in_region(self, region: str) -> list[int]:
        return [broker.id for broker in self.brokers.values() if broker.region == region]


def strandline(*arguments: str, codes: Collection[int] = (0,)) -> str:
    """Standard output of the command; its complaint as a DemoError, unless it ends with one of
    `codes`."""
    try:
        done = subprocess.run(
            [STRANDLINE, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DemoError(f"strandline {' '.join(arguments)}: no end within {TIMEOUT_S} s") from None
    if done.returncode not in codes:
        raise DemoError(f"strandline {' '.join(arguments)}: {complaint(done.stderr)}")
    return done.stdout


def complaint(stderr: str) -> str:
    """The one line in which a command says what is wrong."""
    lines = stderr.strip().splitlines()
    return lines[-1].removeprefix("error: ") if lines else "no reason given"


def start_cluster(directory: Path) -> Cluster:
    """Five brokers in three regions, each with a bucket; returns when all of them serve."""
    told = strandline(
        *("dev", "start", "--dir", str(directory), "--rtt", ROUND_TRIPS),
        *("--port-base", str(PORT_BASE), "--json", "--tiered"),
        *("--set", f"metrics.port={METRICS_PORT}", "--set", "tiered.export_interval_ms=1000"),
        *("--set", "storage.retention_check_interval_ms=1000"),
    )
    return _cluster(directory, told)


def read_cluster(directory: Path) -> Cluster:
    """The cluster now."""
    return _cluster(directory, strandline("dev", "status", "--dir", str(directory), "--json"))


def kill_region(directory: Path, region: str) -> None:
    """SIGKILL to every broker of the region."""
    strandline("dev", "region", "kill", region, "--dir", str(directory))


def is_gone(pid: int) -> bool:
    """Whether the process has ended, its parent having noticed or not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state in "ZX"


def start_region(directory: Path, region: str) -> None:
    """Returns when every broker of the region serves again."""
    strandline("dev", "region", "start", region, "--dir", str(directory))


def stop_cluster(directory: Path) -> None:
    """Ends every broker."""
    strandline("dev", "stop", "--dir", str(directory))


def create_topic(cluster: Cluster, name: str, *, partitions: int, replicas: int) -> None:
    """Returns when every partition has a leader."""
    strandline(
        *("topic", "create", name, "--bootstrap", cluster.bootstrap),
        *("--partitions", str(partitions), "--replicas", str(replicas)),
    )


def _cluster(directory: Path, told: str) -> Cluster:
    answer = json.loads(told)
    brokers = [
        Broker(
            broker["id"],
            broker["address"],
            broker["labels"]["region"],
            broker["pid"],
            broker["serving"],
        )
        for broker in answer["brokers"]
    ]
    return Cluster(directory, answer["bootstrap"], {broker.id: broker for broker in brokers})
