"""A machine of one broker and one of two under the same load: requests per second, and the CPU that
each request costs.

Why:    `serve --cores N` is worth what N processes do together (decision 0071).
How:    Two machines, `--cores 1` and `--cores 2`, on this one; a topic of four partitions on each.
        One process sends batches that are dear to brokers and cheap to itself, acks=1, over raw
        sockets. Rounds take turns, and each figure is the median. On two cores the load takes a
        part of the second one, so the requests per second cannot double; the CPU per request shows
        what a second process costs.
"""

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from bench.clusters import STRANDLINE, Cluster
from bench.paced import create_topic
from strandline.cli.dev.plan import is_port_free

CORES = (1, 2)
ROUNDS = 3
PARTITIONS = 4
TOPIC = "packed"
BATCH_BYTES, RECORD_BYTES, CODEC = 16_384, 100, "gzip"
CONNECTIONS = 8
PORTS = range(21_000, 29_000, 100)
START_S = 60
POLL_S = 0.1
Load = Callable[..., dict[str, object]]
Say = Callable[..., None]


def run(work: Path, load: Load, say: Say) -> None:
    """Both machines. `load`: runs bench.load against a cluster."""
    figures: dict[int, list[dict[str, object]]] = {cores: [] for cores in CORES}
    with ExitStack() as stack:
        machines = {
            cores: stack.enter_context(machine(work / str(cores), cores)) for cores in CORES
        }
        configs = {"segment.bytes": str(64 << 20), "retention.bytes": str(64 << 20)}
        for one in machines.values():
            create_topic(one.bootstrap, TOPIC, partitions=PARTITIONS, replicas=1, configs=configs)
        for number in range(ROUNDS + 1):
            for cores, one in machines.items():
                found = load(
                    one, TOPIC, batch_bytes=BATCH_BYTES, record_bytes=RECORD_BYTES, acks=1,
                    connections=CONNECTIONS, codec=CODEC,
                )  # fmt: skip
                assert not found["errors"], found
                if number:  # The first round warms the brokers up.
                    figures[cores].append(found)
    for cores, rounds in figures.items():
        say(
            cores=cores,
            **{
                name: median(float(str(one[name])) for one in rounds)
                for name in ("requests_per_s", "broker_cores", "cpu_us_per_request")
            },
        )


@contextmanager
def machine(directory: Path, cores: int) -> Iterator[Cluster]:
    """A machine that serves, ended at the end."""
    directory.mkdir(parents=True)
    base = next(one for one in PORTS if all(map(is_port_free, range(one, one + 3 * cores + 30))))
    file = directory / "machine.toml"
    file.write_text(
        f'[broker]\nid = 1\ndata_directory = "{directory / "data"}"\n'
        f'[broker.labels]\nhost = "m{cores}"\n'
        f'[cluster]\nid = "m{cores}"\nseeds = ["1@127.0.0.1:{base + 10}"]\n'
        f"[listener]\nkafka_port = {base}\n[rpc]\nport = {base + 10}\n"
        f"[metrics]\nport = {base + 20}\n"
    )
    with open(directory / "machine.log", "wb") as log:
        process = subprocess.Popen(
            [STRANDLINE, "serve", "--cores", str(cores), "--config", str(file)],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        _wait_ready(base + 20)
        brokers = json.loads(_ask(base + 20, "/v1/machine"))["brokers"]
        yield Cluster(
            name=f"cores-{cores}",
            bootstrap=",".join(one["kafka"] for one in brokers),
            pids={one["id"]: one["pid"] for one in brokers},
            directory=directory,
        )
    finally:
        process.terminate()
        process.wait()


def _wait_ready(port: int) -> None:
    until = time.monotonic() + START_S
    while True:
        try:
            _ask(port, "/readyz")
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(POLL_S)


def _ask(port: int, path: str) -> bytes:
    """A page of a machine. Raises OSError if it is not 200."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
        found: bytes = answer.read()
        return found
