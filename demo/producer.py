"""One producer process: a third of the flights, in one region, at an even pace.

How:    acks=all and idempotent, so that a flight is acknowledged when a quorum of replicas has it
        on disk, and is in the log once, however often it was sent. Each acknowledgement goes into
        the ledger; the last line on stdout summarises the waits."""

import argparse
import itertools
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
from confluent_kafka import KafkaError, Message, Producer

from demo.ledger import LedgerWriter

TOPIC = "flights"
POLL_S = 0.005
SAVE_INTERVAL_S = 0.5
GIVE_UP_MS = 120_000


@dataclass(frozen=True, slots=True)
class ProducerReport:
    """What a producer says at its end, as one line of JSON."""

    sent: int
    failures: list[str]
    longest_gap_ms: float


class AckGaps:
    """The longest time without an acknowledgement while at least one record waited for its own."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.pending = 0
        self.longest_s = 0.0
        self._clock = clock
        self._since = 0.0

    def on_sent(self) -> None:
        if self.pending == 0:
            self._since = self._clock()
        self.pending += 1

    def on_ack(self) -> None:
        now = self._clock()
        self.longest_s = max(self.longest_s, now - self._since)
        self._since = now
        self.pending -= 1


class FlightProducer:
    """Sends flights and writes down what came of each."""

    def __init__(self, *, bootstrap: str, region: str, ledger: LedgerWriter) -> None:
        self.gaps = AckGaps()
        self.failures: list[str] = []
        self._ledger = ledger
        self._saved = time.monotonic()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": f"flights-{region}",
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 20,
                "compression.type": "lz4",
                "message.timeout.ms": GIVE_UP_MS,
                "reconnect.backoff.max.ms": 500,
                "retry.backoff.ms": 50,
                "retry.backoff.max.ms": 200,
                "log_level": 2,
            }
        )

    def send(self, flight: int, line: bytes) -> None:
        """Hands one flight to the client, waiting while its queue is full."""
        while True:
            try:
                self._producer.produce(
                    TOPIC, line, str(flight).encode(), on_delivery=self._on_delivery
                )
            except BufferError:
                self.poll()
            else:
                self.gaps.on_sent()
                return

    def poll(self) -> None:
        """Takes in acknowledgements for a moment."""
        self._producer.poll(POLL_S)
        now = time.monotonic()
        if now - self._saved > SAVE_INTERVAL_S:
            self._saved = now
            self._ledger.save()

    def finish(self) -> None:
        """Returns when every flight was acknowledged or given up."""
        while self.gaps.pending:
            self.poll()

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        self.gaps.on_ack()
        if error is not None:
            self.failures.append(str(error))
            return
        self._ledger.add(message)


def main() -> None:
    """Sends lines share, share + of, share + 2 of, ... of the file within `seconds`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--region", required=True)
    parser.add_argument("--flights", type=Path, required=True)
    parser.add_argument("--ledger", type=Path, required=True)
    parser.add_argument("--share", type=int, required=True)
    parser.add_argument("--of", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    told = parser.parse_args()

    lines = told.flights.read_bytes().splitlines()
    mine = range(told.share, len(lines), told.of)
    with LedgerWriter(told.ledger) as ledger:
        producer = FlightProducer(bootstrap=told.bootstrap, region=told.region, ledger=ledger)
        begun = time.monotonic()
        due = iter(mine)
        sent = 0
        while sent < len(mine):
            elapsed = time.monotonic() - begun
            ready = min(len(mine), int(len(mine) * elapsed / told.seconds) + 1)
            for flight in itertools.islice(due, ready - sent):
                producer.send(flight, lines[flight])
            sent = ready
            producer.poll()
        producer.finish()
    report = ProducerReport(sent, producer.failures, producer.gaps.longest_s * 1000)
    sys.stdout.write(msgspec.json.encode(report).decode() + "\n")


if __name__ == "__main__":
    main()
