"""A broker with much data is killed: how long until it serves again.

Why:    after a crash the broker must check its logs, without reading all of them.
How:    `python -m bench.restart --partitions 1000 --megabytes 10`: one broker, batches of 100 KB
        in turn to all partitions with acks=1, `kill -9`, start; then once more after
        `echo 3 > /proc/sys/vm/drop_caches`, if that is writable. The figures are the times of the
        start command, and until Metadata has a leader for every partition.
"""

import json
import os
import selectors
import socket
import struct
import time
from pathlib import Path

from bench.alone import Say, run_alone
from bench.clusters import Cluster, command, memory_mb
from bench.load import cpu_seconds, make_batch, produce_frame
from bench.paced import create_topic
from bench.partitions import TOPIC, Watcher

BATCH_BYTES = 100_000
CONNECTIONS = 4
IN_FLIGHT = 16
LOOK_S = 0.1
START_S_MAX = 300
DROP_CACHES = Path("/proc/sys/vm/drop_caches")
BROKER = 1


def measure(cluster: Cluster, say: Say, *, partitions: int, megabytes: int) -> None:
    """Fill, kill, start; drop the page cache, kill, start."""
    create_topic(cluster.bootstrap, TOPIC, partitions=partitions, replicas=1)
    begin = time.monotonic()
    written = _fill(cluster.bootstrap, partitions=partitions, megabytes=megabytes)
    say(step="fill", gb=round(written / 1e9, 2), seconds=round(time.monotonic() - begin, 1))
    pid = cluster.pids[BROKER]
    for cache in ("warm", "cold"):
        os.kill(pid, 9)
        wait_gone(pid)
        if cache == "cold":
            os.sync()
            try:
                DROP_CACHES.write_text("3")
            except OSError:
                return
        begin = time.monotonic()
        command("dev", "broker", "start", str(BROKER), "--dir", str(cluster.directory))
        serving_s = time.monotonic() - begin
        watcher = Watcher(cluster.bootstrap)
        while True:
            look = watcher.look()
            led = sum(leader >= 0 for leader in look.leaders.values())
            if led == partitions or look.answered_s - begin > START_S_MAX:
                break
            time.sleep(LOOK_S)
        pid = pid_of(cluster)
        say(
            step="recovery",
            cache=cache,
            partitions=partitions,
            gb=round(written / 1e9, 2),
            serving_s=round(serving_s, 2),
            all_led_s=round(look.answered_s - begin, 2),
            without_leader=partitions - led,
            broker_cpu_s=round(cpu_seconds([pid]), 2),
            rss_mb=round(memory_mb(pid)),
        )


def pid_of(cluster: Cluster) -> int:
    """The process of the first broker."""
    told = json.loads(command("dev", "status", "--dir", str(cluster.directory), "--json"))
    return int(told["brokers"][0]["pid"])


def wait_gone(pid: int) -> None:
    """Wait until a process has ended."""
    while Path(f"/proc/{pid}").exists():
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        if state == "Z":
            return
        time.sleep(0.01)


def _fill(bootstrap: str, *, partitions: int, megabytes: int) -> int:
    """Write so much to each partition; the bytes that were acknowledged."""
    host, port = bootstrap.rsplit(":", 1)
    batch = make_batch(BATCH_BYTES, 1_000)
    rounds = megabytes * 1_000_000 // len(batch)
    frames = [produce_frame(TOPIC, n, batch=batch, acks=1) for n in range(partitions)]
    lanes = [_Lane(host, int(port), frames[n::CONNECTIONS], rounds) for n in range(CONNECTIONS)]
    selector = selectors.DefaultSelector()
    for lane in lanes:
        lane.send()
        selector.register(lane.sock, selectors.EVENT_READ, lane)
    while not all(lane.is_done for lane in lanes):
        for key, _ in selector.select(1):
            key.data.receive()
            key.data.send()
    for lane in lanes:
        lane.sock.close()
    return sum(lane.accepted for lane in lanes) * len(batch)


class _Lane:
    """A connection that sends its frames in turn, so many rounds, some in flight at a time."""

    def __init__(self, host: str, port: int, frames: list[bytes], rounds: int) -> None:
        self.sock = socket.create_connection((host, port))
        self.accepted = 0
        self._frames = frames
        self._total = rounds * len(frames)
        self._sent = 0
        self._answered = 0
        self._received = b""

    @property
    def is_done(self) -> bool:
        return self._answered == self._total

    def send(self) -> None:
        while self._sent < self._total and self._sent - self._answered < IN_FLIGHT:
            self.sock.sendall(self._frames[self._sent % len(self._frames)])
            self._sent += 1

    def receive(self) -> None:
        data = self._received + self.sock.recv(1 << 20)
        position = 0
        while len(data) - position >= 4:
            (size,) = struct.unpack_from(">i", data, position)
            if len(data) - position - 4 < size:
                break
            at = position + 8 + 4 + 2 + len(TOPIC) + 4 + 4
            self.accepted += struct.unpack_from(">h", data, at)[0] == 0
            self._answered += 1
            position += 4 + size
        self._received = data[position:]


def main() -> None:
    """One run with the given numbers."""
    run_alone(measure, description=__doc__, regions="east=1", partitions=1_000, megabytes=10)


if __name__ == "__main__":
    main()
