"""Producers and consumers of a drill: one of each for every partition, and their waits.

Why:    a client that waits for one partition must not hide the wait of another.
How:    a thread for each, with its own client, which does one thing at a time. A producer sends a
        record, waits for its acknowledgement (acks=all), pauses, and sends the next one. Abandoned
        records never count as acknowledged.
Owns:   what was acknowledged and consumed, and the waits, until the load is stopped.
Source: docs/decisions/0019-drills.md."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

from strandline.base.errors import StrandlineError
from strandline.cli.drill.verdict import NO_OFFSET, Place
from strandline.client.cluster import Client
from strandline.client.consumer import Consumer
from strandline.client.producer import Producer

PAUSE_MS = 10
"""Between an acknowledgement and the next record."""
RETRY_PAUSE_MS = 50


def now_ms() -> int:
    """Monotonic time of this process."""
    return time.monotonic_ns() // 1_000_000


@dataclass(slots=True)
class Waits:
    """How long one client waited, each time: (when that was over, how long), in ms."""

    ended: list[tuple[int, int]] = field(default_factory=list)

    def since(self, begun_ms: int) -> list[int]:
        """Those that were not over at `begun_ms`."""
        return [length for end, length in self.ended if end >= begun_ms]

    def longest_ms(self, begun_ms: int) -> int:
        """The longest of them; 0 for none."""
        return max(self.since(begun_ms), default=0)

    def p50_ms(self, begun_ms: int) -> int:
        """The middle one; 0 for none."""
        waits = self.since(begun_ms)
        return int(median(waits)) if waits else 0


class Load:
    """See the module. `make_client` is called in each thread. Start once, stop once."""

    def __init__(self, make_client: Callable[[], Client], topic: str, partitions: int) -> None:
        self._make_client = make_client
        self._topic = topic
        self._stops_producing, self._stops_consuming = threading.Event(), threading.Event()
        self.acknowledged: list[list[Place]] = [[] for _ in range(partitions)]
        self.consumed: list[list[Place]] = [[] for _ in range(partitions)]
        self.producer_waits = [Waits() for _ in range(partitions)]
        self.consumer_waits = [Waits() for _ in range(partitions)]
        self._given_up = [0] * partitions
        self._stopped_ms = 0
        self._producers = self._threads(self._produce, partitions)
        self._consumers = self._threads(self._consume, partitions)

    @property
    def is_under_way(self) -> bool:
        """Whether every producer and every consumer has had something."""
        return all(self.acknowledged) and all(self.consumed)

    @property
    def given_up_count(self) -> int:
        """Records that were neither acknowledged nor refused in time: they may be there."""
        return sum(self._given_up)

    @property
    def is_read(self) -> bool:
        """Whether the consumers have been given as many as were acknowledged."""
        pairs = zip(self.acknowledged, self.consumed, strict=True)
        return all(len(read) >= len(sent) for sent, read in pairs)

    def start(self) -> None:
        """Begin."""
        for one in (*self._producers, *self._consumers):
            one.start()

    def stop_producing(self) -> None:
        """Returns when the record in hand of each producer is acknowledged or given up."""
        self._stopped_ms = now_ms()
        self._stops_producing.set()
        for one in self._producers:
            if one.ident is not None:
                one.join()

    def stop(self) -> None:
        """Stop; unfinished requests count as waits."""
        self.stop_producing()
        self._stops_consuming.set()
        for one in self._consumers:
            if one.ident is not None:
                one.join()

    def abandon(self) -> None:
        """Stop without waiting for unfinished requests."""
        self._stops_producing.set()
        self._stops_consuming.set()

    def _threads(self, work: Callable[[int], None], count: int) -> Sequence[threading.Thread]:
        return [threading.Thread(target=work, args=(one,), daemon=True) for one in range(count)]

    def _produce(self, partition: int) -> None:
        acknowledged, waits = self.acknowledged[partition], self.producer_waits[partition]
        with self._make_client() as client:
            producer: Producer | None = None
            number, last_ms = 0, now_ms()
            while not self._stops_producing.is_set():
                value = b"%d-%d" % (partition, number)
                number += 1
                try:
                    producer = producer or Producer(client, self._topic)
                    producer.acknowledged.clear()
                    producer.send(value, partition=partition)
                    producer.flush()
                except StrandlineError:
                    # Perhaps it is there all the same; the next one has to do without its sequence.
                    producer = None
                    self._given_up[partition] += 1
                    self._stops_producing.wait(RETRY_PAUSE_MS / 1000)
                    continue
                offset = producer.acknowledged[partition].first_offset
                acknowledged.append(Place(partition, offset if offset >= 0 else NO_OFFSET, value))
                now = now_ms()
                waits.ended.append((now, now - last_ms))
                last_ms = now
                self._stops_producing.wait(PAUSE_MS / 1000)
            end_wait(waits, last_ms, now_ms())

    def _consume(self, partition: int) -> None:
        consumed, waits = self.consumed[partition], self.consumer_waits[partition]
        with self._make_client() as client:
            consumer = Consumer(client, self._topic, {partition: 0})
            last_ms = now_ms()
            while not self._stops_consuming.is_set():
                try:
                    records = consumer.poll()
                except StrandlineError:
                    self._stops_consuming.wait(RETRY_PAUSE_MS / 1000)
                    continue
                consumed += [Place(partition, one.offset, one.value or b"") for one in records]
                if records and not self._stops_producing.is_set():
                    now = now_ms()
                    waits.ended.append((now, now - last_ms))
                    last_ms = now
            consumer.close()
            end_wait(waits, last_ms, self._stopped_ms)


def end_wait(waits: Waits, last_ms: int, end_ms: int) -> None:
    """Count the wait that was not over when the load ended."""
    if end_ms > last_ms:
        waits.ended.append((end_ms, end_ms - last_ms))
