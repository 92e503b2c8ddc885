"""The client processes: three producers and a consumer group of three, one of each in a region."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from demo.cluster import Cluster, DemoError
from demo.producer import ProducerReport

END_TIMEOUT_S = 20


class Clients:
    """Starts the clients, knows their ledgers, and ends what still runs."""

    def __init__(self, cluster: Cluster, work: Path) -> None:
        self.acknowledged = [work / f"acknowledged-{region}" for region in cluster.regions]
        self.read = [work / f"read-{region}" for region in cluster.regions]
        self._cluster = cluster
        self._work = work
        self._producers: list[subprocess.Popen[str]] = []
        self._consumers: list[subprocess.Popen[str]] = []

    def start_consumers(self) -> None:
        for region, ledger in zip(self._cluster.regions, self.read, strict=True):
            self._consumers.append(self._start("consumer", region, ledger))

    def start_producers(self, flights: Path, *, seconds: float) -> None:
        regions = self._cluster.regions
        for share, (region, ledger) in enumerate(zip(regions, self.acknowledged, strict=True)):
            self._producers.append(
                self._start(
                    *("producer", region, ledger, "--flights", str(flights)),
                    *("--seconds", str(seconds), "--share", str(share), "--of", str(len(regions))),
                )
            )

    def _start(
        self, role: str, region: str, ledger: Path, *arguments: str
    ) -> subprocess.Popen[str]:
        # In a session of its own: Ctrl-C reaches the demo alone, which then ends everything.
        with (self._work / f"{role}-{region}.log").open("wb") as log:
            return subprocess.Popen(
                [
                    *(sys.executable, "-m", f"demo.{role}", "--region", region),
                    *("--bootstrap", self._cluster.bootstrap, "--ledger", str(ledger), *arguments),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if role == "producer" else log,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def check(self) -> None:
        """Raises DemoError when a client has ended that should not have."""
        for process in (*self._producers, *self._consumers):
            if process.poll() not in (None, 0):
                raise DemoError(f"a client failed: see the logs in {self._work}")

    def producers_done(self) -> bool:
        return all(process.poll() is not None for process in self._producers)

    def reports(self) -> list[ProducerReport]:
        """What each producer says of its waiting, after all of them have ended."""
        outputs = (process.communicate()[0] for process in self._producers)
        return [msgspec.json.decode(output, type=ProducerReport) for output in outputs]

    def stop_consumers(self) -> None:
        _end(self._consumers)

    def end(self) -> None:
        """Ends everything that still runs, by its process id."""
        _end((*self._producers, *self._consumers))


def _end(processes: Sequence[subprocess.Popen[str]]) -> None:
    for process in processes:
        if process.poll() is None:
            process.terminate()
    for process in processes:
        try:
            process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
