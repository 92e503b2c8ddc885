"""How many Python functions one small acks=all request calls, in all three brokers, by file.

Why:    a broker's profile is flat: what a request costs is the number of layers that it passes.
How:    `python -m bench.request_path`: a cluster of three brokers on loopback, whose processes are
        replaced by ones that count calls of Python functions (`cProfile`) between two signals.
        `bench.load` sends requests of one record, acks=all, to a topic of three replicas: six
        connections to six partitions, five requests in flight on each, then one; then one
        connection, one request at a time. A line for each says how many calls a request makes, in
        how many files, and which functions have most; what the brokers call without any request is
        counted before, and subtracted.
            Counting slows the brokers down, so more requests share a pass of the loop than without
        it: compare commits by all three figures, and by `bench.run small-requests` for the CPU. If
        a request takes more than 5 ms, followers are told of its commit by a message of its own:
        figures of a busy machine are higher.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from cProfile import Profile
from pathlib import Path
from types import CodeType

from bench.clusters import Cluster, strandline
from bench.paced import create_topic

BROKERS = 3
PARTITIONS = 6
TOPIC = "path"
SECONDS = 4
BATCH_BYTES, RECORD_BYTES = 200, 100
LOADS = (("pipelining", 6, 5), ("one in flight", 6, 1), ("one connection", 1, 1))
"""(name, connections, requests in flight on each)"""
START_S = 20
POLL_S = 0.05
SOURCES = str(Path("src") / "strandline")
_BEGIN, _END = signal.SIGUSR1, signal.SIGUSR2


class CallCounter:
    """Counts calls of Python functions on the main thread from SIGUSR1 to SIGUSR2, then writes them
    to a file: {"path:function": calls}."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._profile = Profile(builtins=False)
        signal.signal(_BEGIN, self._begin)
        signal.signal(_END, self._end)

    def _begin(self, *_: object) -> None:
        self._profile.clear()
        self._profile.enable(builtins=False)

    def _end(self, *_: object) -> None:
        self._profile.disable()
        found: Counter[str] = Counter()
        for entry in self._profile.getstats():
            if isinstance(entry.code, CodeType):
                code = entry.code
                found[f"{_short(code.co_filename)}:{code.co_qualname}"] += entry.callcount
        part = self._target.with_suffix(".part")
        part.write_text(json.dumps(found))
        part.rename(self._target)


def _short(path: str) -> str:
    return path.partition(f"{SOURCES}/")[2] or path


def serve(config: Path, target: Path) -> int:
    """Be a broker that counts."""
    from strandline.cli.server.serve import serve_file

    CallCounter(target)
    return serve_file(config, environment={})


@contextmanager
def counting(cluster: Cluster, work: Path) -> Iterator[dict[int, Path]]:
    """Replace the brokers' processes by ones that count: {broker: where it writes its counts}."""
    targets = {broker: work / f"calls-{broker}.json" for broker in cluster.pids}
    for broker in list(cluster.pids):
        cluster.kill(broker)
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for broker, target in targets.items():
            config = cluster.directory / f"broker-{broker}" / "config.toml"
            with cluster.log(broker).open("ab") as log:
                one = subprocess.Popen(
                    [sys.executable, "-m", "bench.request_path", "--serve", config, target],
                    stdout=log,
                    stderr=log,
                )
            processes.append(one)
            cluster.pids[broker] = one.pid
        yield targets
    finally:
        for one in processes:
            one.terminate()
        for one in processes:
            one.wait(START_S)


def measure(
    cluster: Cluster, targets: dict[int, Path], load: tuple[str, int, int], idle: Counter[str]
) -> None:
    """Load once to warm up, once while the brokers count; a line. `idle`: calls in `SECONDS`
    without load."""
    name, connections, in_flight = load
    command = [
        *(sys.executable, "-m", "bench.load", "--bootstrap", cluster.bootstrap, "--topic", TOPIC),
        *("--acks", "-1", "--batch-bytes", str(BATCH_BYTES), "--record-bytes", str(RECORD_BYTES)),
        *("--connections", str(connections), "--in-flight", str(in_flight)),
        *("--seconds", str(SECONDS)),
    ]
    subprocess.run(command, check=True, capture_output=True)
    with counted(cluster, targets) as calls:
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    calls -= idle
    loaded = json.loads(done.stdout)
    requests = round(loaded["requests_per_s"] * SECONDS)
    assert requests and not loaded["errors"], loaded
    by_file: Counter[str] = Counter()
    for function, count in calls.items():
        by_file[function.partition(":")[0]] += count
    figures = {
        "load": name,
        "requests": requests,
        "calls_per_request": round(calls.total() / requests, 1),
        "files": sum(count * 2 >= requests for count in by_file.values()),
        "by_file": _per_request(by_file, requests),
        "by_function": _per_request(calls, requests),
    }
    print(json.dumps(figures), flush=True)


@contextmanager
def counted(cluster: Cluster, targets: dict[int, Path]) -> Iterator[Counter[str]]:
    """What the brokers call meanwhile, filled in at the end."""
    calls: Counter[str] = Counter()
    for pid in cluster.pids.values():
        os.kill(pid, _BEGIN)
    yield calls
    for pid in cluster.pids.values():
        os.kill(pid, _END)
    for target in targets.values():
        calls.update(_taken(target))


def _taken(target: Path) -> Counter[str]:
    """What a broker counted, once it has written that."""
    end = time.monotonic() + START_S
    while not target.exists() and time.monotonic() < end:
        time.sleep(POLL_S)
    found: Counter[str] = Counter(json.loads(target.read_text()))
    target.unlink()
    return found


def _per_request(calls: Counter[str], requests: int) -> dict[str, float]:
    """Those that are called in at least half of all requests."""
    return {
        name: round(count / requests, 2)
        for name, count in calls.most_common()
        if count * 2 >= requests
    }


def main() -> None:
    """Measure all loads; or, with --serve, be one of the brokers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--serve", nargs=2, type=Path, metavar=("CONFIG", "COUNTS"))
    served = parser.parse_args().serve
    if served:
        raise SystemExit(serve(*served))
    with tempfile.TemporaryDirectory(prefix="strandline-bench-") as work:
        directory = Path(work) / "cluster"
        regions = "east=1,west=1,south=1"
        with strandline(directory, regions=regions) as cluster:
            create_topic(cluster.bootstrap, TOPIC, partitions=PARTITIONS, replicas=BROKERS)
            with counting(cluster, Path(work)) as targets:
                create_topic(cluster.bootstrap, "ready", partitions=1, replicas=BROKERS)
                time.sleep(2)
                with counted(cluster, targets) as idle:
                    time.sleep(SECONDS)
                for load in LOADS:
                    measure(cluster, targets, load, idle)


if __name__ == "__main__":
    main()
