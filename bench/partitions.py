"""Many partitions: the cost of creating them, of keeping them, and of losing a leader of many.

Why:    with many groups, the idle ones decide the cost, and the last new leader the outage.
How:    `python -m bench.partitions --partitions 10000 --replicas 3`: five brokers in three regions,
        one topic. The new leaders after a kill are read from the brokers' logs: polling 10,000
        leaders would load the brokers that elect them. Metadata confirms them at the end, and so do
        batches to some of the partitions.
"""

import os
import re
import socket
import struct
import time
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from bench.alone import Say, run_alone
from bench.clusters import Cluster, memory_mb
from bench.load import METADATA, METADATA_VERSION, call, cpu_seconds, make_batch, produce_frame
from strandline.protocol.codec import decode, encode
from strandline.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

TOPIC = "many"
REGIONS = "east=2,west=2,south=1"
LOOK_S = 0.25
SETTLE_S = 15
CREATE_S_MAX = 300
FAILOVER_S_MAX = 60
PRODUCE_COUNT = 200
"""How many of the moved partitions are produced to at the end."""
_LEADS = re.compile(rf'^time=(\S+) .*event="{TOPIC}-(\d+): leads epoch', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Look:
    """One answer to a Metadata request. `leaders`: {partition: broker}, -1 for none."""

    asked_s: float
    answered_s: float
    leaders: dict[int, int]


class Watcher:
    """A connection to ask one broker for leaders."""

    def __init__(self, address: str) -> None:
        host, port = address.rsplit(":", 1)
        self._sock = socket.create_connection((host, int(port)))
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
        self._body = bytes(encode(asked, METADATA_VERSION))

    def look(self) -> Look:
        """Ask once."""
        asked_s = time.monotonic()
        data = call(self._sock, METADATA, METADATA_VERSION, self._body)
        answered_s = time.monotonic()
        answer, _ = decode(MetadataResponse, data, 0, METADATA_VERSION)
        leaders = {p.partition_index: p.leader_id for p in answer.topics[0].partitions}
        return Look(asked_s, answered_s, leaders)


def measure(cluster: Cluster, say: Say, *, partitions: int, replicas: int, idle_s: int) -> None:
    """Create, idle, kill; a line for each."""
    addresses = dict(zip(cluster.pids, cluster.bootstrap.split(","), strict=True))
    _create(cluster, say, partitions=partitions, replicas=replicas)
    time.sleep(SETTLE_S)
    _idle(cluster, say, idle_s)
    _fail_over(cluster, say, addresses)
    elections = sum(_elections_of(cluster).values())
    say(step="elections", in_all_logs=elections, partitions=partitions)


def _create(cluster: Cluster, say: Say, *, partitions: int, replicas: int) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    before = cpu_of(cluster)
    begin = time.monotonic()
    futures = admin.create_topics([NewTopic(TOPIC, partitions, replicas)])
    futures[TOPIC].result(CREATE_S_MAX)
    answered = time.monotonic()
    watcher = Watcher(cluster.bootstrap.split(",")[-1])
    while True:
        look = watcher.look()
        missing = partitions - sum(leader >= 0 for leader in look.leaders.values())
        if not missing or look.answered_s - begin > CREATE_S_MAX:
            break
        time.sleep(1)
    say(
        step="create",
        partitions=partitions,
        replicas=replicas,
        answered_s=round(answered - begin, 1),
        all_led_s=round(look.answered_s - begin, 1),
        without_leader=missing,
        metadata_ms=round((look.answered_s - look.asked_s) * 1000),
        broker_cpu_s=spent_since(cluster, before),
        leaders=dict(sorted(Counter(look.leaders.values()).items())),
    )


def _idle(cluster: Cluster, say: Say, idle_s: int) -> None:
    before = cpu_of(cluster)
    begin = time.monotonic()
    time.sleep(idle_s)
    elapsed = time.monotonic() - begin
    spent = spent_since(cluster, before)
    say(
        step="idle",
        seconds=round(elapsed, 1),
        core_percent={one: round(cpu / elapsed * 100, 2) for one, cpu in spent.items()},
        rss_mb={one: round(memory_mb(pid)) for one, pid in cluster.pids.items()},
        open_files={one: _open_files(pid) for one, pid in cluster.pids.items()},
    )


def _fail_over(cluster: Cluster, say: Say, addresses: dict[int, str]) -> None:
    first = Watcher(addresses[max(addresses)]).look()
    counts = Counter(first.leaders.values())
    victim = max((one for one in counts if one >= 0), key=lambda one: counts[one])
    lost = {partition for partition, leader in first.leaders.items() if leader == victim}
    survivors = {one: pid for one, pid in cluster.pids.items() if one != victim}
    alive = Cluster(cluster.name, cluster.bootstrap, survivors, cluster.directory)
    news = _News(alive)
    before = cpu_of(alive)
    killed = time.time()
    cluster.kill(victim)
    led_s: dict[int, float] = {}
    while len(led_s) < len(lost) and time.time() - killed < FAILOVER_S_MAX:
        time.sleep(LOOK_S)
        led_s.update((one, at - killed) for one, at in news.led() if one in lost)
    spent = spent_since(alive, before)
    ordered = sorted(led_s.values())
    look = Watcher(addresses[max(survivors)]).look()
    led = sorted(one for one in lost if look.leaders[one] not in (victim, -1))
    accepted = _produce_to(led[:PRODUCE_COUNT], look.leaders, addresses)
    say(
        step="failover",
        killed_led=len(lost),
        not_led=len(lost) - len(led),
        p50_s=round(ordered[len(ordered) // 2], 2) if ordered else None,
        last_s=round(ordered[-1], 2) if ordered else None,
        broker_cpu_s=spent,
        produced_to=accepted,
    )
    time.sleep(SETTLE_S)
    before, begin = cpu_of(alive), time.monotonic()
    time.sleep(SETTLE_S)
    elapsed = time.monotonic() - begin
    spent = spent_since(alive, before)
    say(
        step="idle-one-down",
        core_percent={one: round(cpu / elapsed * 100, 2) for one, cpu in spent.items()},
    )


class _News:
    """What the brokers write to their logs from now on."""

    def __init__(self, cluster: Cluster) -> None:
        self._files = [(cluster.log(one)).open(errors="replace") for one in cluster.pids]
        for file in self._files:
            file.seek(0, os.SEEK_END)

    def led(self) -> list[tuple[int, float]]:
        """(partition, the time of day in seconds) of each that a broker came to lead."""
        found = []
        for file in self._files:
            for at, partition in _LEADS.findall(file.read()):
                found.append((int(partition), datetime.fromisoformat(at).timestamp()))
        return found


def _produce_to(partitions: list[int], leaders: dict[int, int], addresses: dict[int, str]) -> int:
    """Produce a batch to each with acks=all; how many were accepted."""
    batch = make_batch(200, 100)
    accepted = 0
    sockets: dict[int, socket.socket] = {}
    for partition in partitions:
        leader = leaders[partition]
        if leader not in sockets:
            host, port = addresses[leader].rsplit(":", 1)
            sockets[leader] = socket.create_connection((host, int(port)))
        frame = produce_frame(TOPIC, partition, batch=batch, acks=-1)
        sockets[leader].sendall(frame)
        size = struct.unpack(">i", _receive(sockets[leader], 4))[0]
        answer = _receive(sockets[leader], size)
        at = 4 + 4 + 2 + len(TOPIC) + 4 + 4
        accepted += struct.unpack_from(">h", answer, at)[0] == 0
    return accepted


def _receive(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += sock.recv(size - len(data))
    return data


def _elections_of(cluster: Cluster) -> Counter[int]:
    """{broker: how often it came to lead something}, by its log."""
    counts: Counter[int] = Counter()
    for one in cluster.pids:
        counts[one] = cluster.log(one).read_text(errors="replace").count(": leads epoch")
    return counts


def cpu_of(cluster: Cluster) -> dict[int, float]:
    """{broker: CPU seconds so far}."""
    return {one: cpu_seconds([pid]) for one, pid in cluster.pids.items()}


def spent_since(cluster: Cluster, before: dict[int, float]) -> dict[int, float]:
    """{broker: CPU seconds since `cpu_of` gave `before`}."""
    return {one: round(cpu - before[one], 2) for one, cpu in cpu_of(cluster).items()}


def _open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def main() -> None:
    """One run with the given numbers."""
    run_alone(
        measure,
        description=__doc__,
        regions=REGIONS,
        partitions=10_000,
        replicas=3,
        idle_s=60,
    )


if __name__ == "__main__":
    main()
