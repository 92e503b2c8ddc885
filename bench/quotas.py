"""What a greedy client does to a quiet one, without a quota and with one: p99 of the quiet client's
acknowledgements.

Why:    a quota is worth what it keeps from the others (decision 0070): a greedy client with one
        moves the p99 of a quiet one by at most 20 %.
How:    One broker. The quiet client produces 1 KB records at a fixed rate, acks=all. Beside it a
        process of its own is greedy in one of two ways, over raw sockets and without heeding
        throttle times:
            produce   1 MB requests, several in flight on each of its connections
            ask       requests for the metadata of all topics on each of its connections
        The steps (alone, greedy, limited) take turns, and each figure is the median of the rounds.
        A limited step begins once the quota's first burst is used up.
"""

import json
import multiprocessing
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from bench.clusters import STRANDLINE, Cluster, strandline
from bench.load import cpu_seconds, make_batch, produce_frame
from bench.paced import PacedProducer, create_topic
from strandline.protocol.codec import encode
from strandline.protocol.messages.metadata import MetadataRequest

QUIET, GREEDY = "quiet", "greedy"
STEPS = ("alone", "greedy", "limited")
RATE, ROUND_S, ROUNDS = 200, 8, 3
CONNECTIONS, IN_FLIGHT = 4, 4
TOPICS = 200
"""Of which the answers to `ask` are full."""
BURST_S = 3
"""So long a greedy client takes to use up its burst."""
LIMITS = {"produce": "producer_byte_rate=1000000", "ask": "request_percentage=2"}
METADATA, METADATA_VERSION = 3, 5
Say = Callable[..., None]


def run(work: Path, say: Say) -> None:
    """Both kinds of greed."""
    configs = {"segment.bytes": str(64 << 20), "retention.bytes": str(128 << 20)}
    with strandline(work / "cluster", regions="east=1") as cluster:
        for name in (QUIET, GREEDY):
            create_topic(cluster.bootstrap, name, partitions=1, replicas=1, configs=configs)
        for number in range(TOPICS):
            create_topic(cluster.bootstrap, f"other-{number}", partitions=1, replicas=1)
        for greed in LIMITS:
            measure(cluster, greed, say)


def measure(cluster: Cluster, greed: str, say: Say) -> None:
    """The quiet client alone, beside the greedy one, and beside it under its quota."""
    p50: dict[str, list[float]] = {step: [] for step in STEPS}
    p99: dict[str, list[float]] = {step: [] for step in STEPS}
    cpu: dict[str, list[float]] = {step: [] for step in STEPS}
    for _ in range(ROUNDS):
        for step in STEPS:
            if step == "limited":
                set_quota(cluster, "set", LIMITS[greed])
            with beside(cluster, greed, is_there=step != "alone"):
                quiet = PacedProducer(cluster.bootstrap, QUIET, partitions=1)
                quiet.warm_up()
                before = cpu_seconds(list(cluster.pids.values()))
                quiet.run(rate=RATE, seconds=ROUND_S)
                quiet.close()
                spent = cpu_seconds(list(cluster.pids.values())) - before
            assert not quiet.deliveries.failed
            p50[step].append(quiet.deliveries.percentile_ms(50))
            p99[step].append(quiet.deliveries.percentile_ms(99))
            cpu[step].append(round(spent / ROUND_S, 3))
            if step == "limited":
                set_quota(cluster, "delete")
    middle = {step: median(some) for step, some in p99.items()}
    say(
        step=greed,
        quota=LIMITS[greed],
        p50_ms=p50,
        p99_ms=p99,
        broker_cpu_share=cpu,
        p99_ratio={step: round(middle[step] / middle["alone"], 2) for step in middle},
    )


def set_quota(cluster: Cluster, verb: str, *quotas: str) -> None:
    """Set or delete the quota of the greedy client."""
    whose = ("--client-id", GREEDY, "-b", cluster.bootstrap)
    subprocess.run([STRANDLINE, "quota", verb, *quotas, *whose], check=True, capture_output=True)


@contextmanager
def beside(cluster: Cluster, greed: str, *, is_there: bool) -> Any:
    """A greedy client in a process of its own, its first burst behind it."""
    if not is_there:
        yield
        return
    host, port = cluster.bootstrap.split(",")[0].rsplit(":", 1)
    greedy = multiprocessing.get_context("spawn").Process(
        target=be_greedy, args=(host, int(port), greed), daemon=True
    )
    greedy.start()
    try:
        time.sleep(BURST_S)
        assert greedy.is_alive(), "the greedy client failed"
        yield
    finally:
        greedy.terminate()
        greedy.join()


def be_greedy(host: str, port: int, greed: str) -> None:
    """Ask as fast as answers come, on some connections, for ever."""
    frame = named(greedy_frame(greed))
    threads = [threading.Thread(target=flood, args=(host, port, frame)) for _ in range(CONNECTIONS)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


def flood(host: str, port: int, frame: bytes) -> None:
    """One connection with IN_FLIGHT requests."""
    with socket.create_connection((host, port)) as sock:
        for _ in range(IN_FLIGHT):
            sock.sendall(frame)
        with sock.makefile("rb") as answers:
            while head := answers.read(4):
                answers.read(struct.unpack(">i", head)[0])
                sock.sendall(frame)


def greedy_frame(greed: str) -> bytes:
    """The request that is sent again and again, without its client's name."""
    if greed == "produce":
        return produce_frame(GREEDY, 0, batch=make_batch(1_000_000, 1_000), acks=1)
    body = bytes(encode(MetadataRequest(topics=None), METADATA_VERSION))
    head = struct.pack(">hhih", METADATA, METADATA_VERSION, 1, -1)
    return struct.pack(">i", len(head) + len(body)) + head + body


def named(frame: bytes) -> bytes:
    """The same request with the greedy client's id."""
    api, version, correlation, length = struct.unpack_from(">hhih", frame, 4)
    assert length == -1
    name = GREEDY.encode()
    head = struct.pack(">hhih", api, version, correlation, len(name)) + name
    body = frame[4 + 10 :]
    return struct.pack(">i", len(head) + len(body)) + head + body


def main() -> None:
    """One round of each, for a look by hand."""
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        run(Path(directory), lambda **figures: print(json.dumps(figures)))


if __name__ == "__main__":
    main()
