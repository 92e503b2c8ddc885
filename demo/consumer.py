"""One member of the consumer group: reads the partitions it is given, from their leaders.

How:    each record that the group delivers goes into the ledger. SIGTERM ends the reading."""

import argparse
import signal
from pathlib import Path

from confluent_kafka import Consumer

from demo.ledger import LedgerWriter
from demo.producer import TOPIC

GROUP = "flight-board"
POLL_S = 0.2
POLL_RECORDS = 2_000


def main() -> None:
    """Reads until SIGTERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--region", required=True)
    parser.add_argument("--ledger", type=Path, required=True)
    told = parser.parse_args()

    stopping = False

    def stop(_number: int, _frame: object) -> None:
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    consumer = Consumer(
        {
            "bootstrap.servers": told.bootstrap,
            "client.id": f"board-{told.region}",
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 10_000,
            "reconnect.backoff.max.ms": 500,
            "log_level": 2,
        }
    )
    consumer.subscribe([TOPIC])
    with LedgerWriter(told.ledger) as ledger:
        while not stopping:
            for message in consumer.consume(POLL_RECORDS, timeout=POLL_S):
                if message.error() is None:
                    ledger.add(message)
            ledger.save()
    consumer.close()


if __name__ == "__main__":
    main()
