"""Writes over a wide area while regions are cut off: a producer that never gives up, and a reader
that counts the records at the end.

Why:    only a search for each acknowledged record shows whether one was lost.
How:    records have consecutive numbers and go to the partitions in turn. The producer is
        librdkafka, idempotent, with acks=all, in a thread of its own: librdkafka's threads run in
        the network namespace of the thread that creates it.
Owns:   the acknowledged records and their times, until the run ends."""

import struct
import threading
import time
from array import array
from functools import partial

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer
from confluent_kafka import TopicPartition as Place

RECORD_BYTES = 1_024
GIVE_UP_MS = 3_600_000
CLIENT = {"reconnect.backoff.max.ms": 500, "log_level": 2}
PATIENCE_MS = 1_000
"""After how long a producer gives up on a broker that does not answer: librdkafka's own 30 and 60 s
would be all that is measured."""
BATCH_BYTES = 64 * 1_024
"""What has waited meanwhile would be a request of 1 MB for each partition, which takes more than
those 1,000 ms to a leader 118 ms away: given up, and sent again from its beginning."""
LINGER_MS = 100
"""With less, more than five requests to a broker are due at a time, which is all that librdkafka
has under way; and it spins while one is due, on the cores that the brokers need."""
WAITING_MAX = 50_000
FLUSH_S, READ_S = 120.0, 600.0
POLL_S = 0.005
_NUMBER = struct.Struct(">q")


class Writer:
    """See the module. `acknowledged`: the numbers; `refused`: {number: why}."""

    def __init__(self, bootstrap: str, topic: str, *, partitions: int, rate: int) -> None:
        self.acknowledged = array("q")
        self.refused: dict[int, str] = {}
        self._topic, self._partitions, self._rate = topic, partitions, rate
        self._first_s: dict[int, float] = {}
        self._since_s = 0.0
        self._since_number = 0
        self._next = 0
        self._stop = threading.Event()
        self._producer = Producer(
            {
                **CLIENT,
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": LINGER_MS,
                "batch.size": BATCH_BYTES,
                "message.timeout.ms": GIVE_UP_MS,
                "request.timeout.ms": PATIENCE_MS,
                "socket.timeout.ms": PATIENCE_MS,
                "socket.connection.setup.timeout.ms": PATIENCE_MS,
                "retry.backoff.ms": 50,
                "retry.backoff.max.ms": 500,
            }
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def look_from(self, since_s: float) -> None:
        """From now on `resumed_s` counts from this moment (monotonic), by records sent later."""
        self._since_s = since_s
        self._since_number = self._next
        self._first_s = {}

    def resumed_s(self) -> dict[int, float]:
        """{partition: how long until the first acknowledgement of a record sent since then}."""
        return {one: at - self._since_s for one, at in list(self._first_s.items())}

    def stop(self) -> None:
        """End; returns when everything is acknowledged or refused."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        padding = bytes(RECORD_BYTES - _NUMBER.size)
        begin = time.monotonic()
        while not self._stop.is_set():
            due = int((time.monotonic() - begin) * self._rate)
            while self._next < due and len(self._producer) < WAITING_MAX:
                self._producer.produce(
                    self._topic,
                    _NUMBER.pack(self._next) + padding,
                    partition=self._next % self._partitions,
                    on_delivery=partial(self._on_delivery, self._next),
                )
                self._next += 1
            self._producer.poll(POLL_S)
        self._producer.flush(FLUSH_S)

    def _on_delivery(self, number: int, error: KafkaError | None, _: Message) -> None:
        now = time.monotonic()
        if error is not None:
            self.refused[number] = error.name()
            return
        self.acknowledged.append(number)
        partition = number % self._partitions
        if number >= self._since_number and partition not in self._first_s:
            self._first_s[partition] = now


def count_numbers(bootstrap: str, topic: str, *, partitions: int, rack: str) -> dict[int, int]:
    """{number: how often it is in the topic}, up to where each partition ends now."""
    consumer = Consumer(
        {
            **CLIENT,
            "bootstrap.servers": bootstrap,
            "group.id": "crossing-audit",
            "client.rack": rack,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    counts: dict[int, int] = {}
    open_ones = set(range(partitions))
    consumer.assign([Place(topic, one, OFFSET_BEGINNING) for one in open_ones])
    end = time.monotonic() + READ_S
    while open_ones and time.monotonic() < end:
        for message in consumer.consume(1_000, 1.0):
            error = message.error()
            if error is None:
                number = _NUMBER.unpack_from(message.value() or b"")[0]
                counts[number] = counts.get(number, 0) + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                open_ones.discard(message.partition())
    consumer.close()
    if open_ones:
        raise TimeoutError(f"partitions {sorted(open_ones)} are not read after {READ_S:.0f} s")
    return counts
