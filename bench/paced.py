"""A producer with a fixed rate that records the latency of each acknowledgement.

Why:    latency at a sustainable rate says more than latency at full speed, which measures a queue.
How:    librdkafka, linger 0, acks=all unless told otherwise; records go to the partitions in turn.
        Latency runs from the call to the delivery report.
"""

import time
from dataclasses import dataclass, field

from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

TIMEOUT_S = 60
POLL_S_MIN = 0.001


@dataclass
class Deliveries:
    """What was delivered. `gap_s`: {partition: longest time between two deliveries}."""

    latencies_ms: list[float] = field(default_factory=list)
    by_partition_ms: dict[int, list[float]] = field(default_factory=dict)
    failed: int = 0
    gap_s: dict[int, float] = field(default_factory=dict)
    last_s: dict[int, float] = field(default_factory=dict)

    def add(self, partition: int, sent_s: float) -> None:
        """One record was delivered now."""
        now = time.monotonic()
        latency_ms = (now - sent_s) * 1000
        self.latencies_ms.append(latency_ms)
        self.by_partition_ms.setdefault(partition, []).append(latency_ms)
        if partition in self.last_s:
            gap = now - self.last_s[partition]
            self.gap_s[partition] = max(gap, self.gap_s.get(partition, 0.0))
        self.last_s[partition] = now

    def percentile_ms(self, percent: float) -> float:
        """The latency that `percent` of the records did not exceed."""
        ordered = sorted(self.latencies_ms)
        return round(ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))], 2)


def create_topic(
    bootstrap: str,
    topic: str,
    *,
    partitions: int,
    replicas: int,
    configs: dict[str, str] | None = None,
) -> None:
    """Create a topic; returns once it can be used."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    wanted = NewTopic(topic, partitions, replicas, config=configs or {})
    admin.create_topics([wanted])[topic].result(TIMEOUT_S)


class PacedProducer:
    """See the module."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        partitions: int,
        acks: str = "all",
        linger_ms: int = 0,
        is_idempotent: bool = False,
    ) -> None:
        self.deliveries = Deliveries()
        self._topic = topic
        self._partitions = partitions
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": acks,
                "linger.ms": linger_ms,
                "enable.idempotence": is_idempotent,
            }
        )

    def warm_up(self) -> None:
        """Send one record to each partition, and wait. A new client needs about 100 ms to find the
        leaders. Without this, the slowest records of a short run would measure only that."""
        for partition in range(self._partitions):
            self._producer.produce(self._topic, value=b"first", partition=partition)
        self._producer.flush(TIMEOUT_S)

    def run(self, *, rate: int, seconds: float, record_bytes: int = 1024) -> None:
        """Produce for so long; late records are sent at once (an open loop)."""
        value = bytes(record_bytes)
        begin = time.monotonic()
        for number in range(int(rate * seconds)):
            due = begin + number / rate
            while (left := due - time.monotonic()) > 0:
                # Never for less than what the client can wait for: it would spin.
                self._producer.poll(max(left, POLL_S_MIN))
            partition = number % self._partitions
            sent = time.monotonic()

            def on_delivery(
                error: object, _: Message, partition: int = partition, sent: float = sent
            ) -> None:
                if error is not None:
                    self.deliveries.failed += 1
                else:
                    self.deliveries.add(partition, sent)

            self._producer.produce(
                self._topic, value=value, partition=partition, on_delivery=on_delivery
            )
            self._producer.poll(0)

    def close(self) -> None:
        """Wait for what is under way, and let go of the connections: a client that outlives its
        cluster tries to connect all through the next one's figures."""
        self._producer.flush(TIMEOUT_S)
        self._producer.close()
