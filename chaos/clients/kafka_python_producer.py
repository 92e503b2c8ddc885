"""kafka-python, pure Python: not idempotent, acks=all or acks=1, one request in flight at a time,
so that no retry overtakes a later request."""

import threading
import time
from functools import partial

from kafka import KafkaProducer
from kafka.errors import KafkaError
from kafka.producer.future import RecordMetadata

from chaos.clients.command_line import Arguments, Stop, parse_arguments
from chaos.clients.pace import Pace
from chaos.clients.security import kafka_python
from chaos.ledger import Acknowledged, Client, Failed, LedgerWriter, now_ns
from chaos.records import make_value, mark_of

POLL_S = 0.02
WAITING_MAX = 1_000


class Writer:
    """Sends records and writes down what came of each."""

    def __init__(self, told: Arguments, ledger: LedgerWriter) -> None:
        self.waiting = 0
        self._lock = threading.Lock()
        self._name = told.name
        self._ledger = ledger
        self._producer = KafkaProducer(
            bootstrap_servers=told.servers,
            client_id=told.name,
            acks=-1 if told.acks == "all" else 1,
            enable_idempotence=False,
            max_in_flight_requests_per_connection=1,
            linger_ms=5,
            request_timeout_ms=5_000,
            delivery_timeout_ms=3_600_000,
            max_block_ms=60_000,
            reconnect_backoff_max_ms=500,
            **kafka_python(told.client_config),
        )

    def send(self, number: int, topic: str, partition: int) -> None:
        """One record."""
        value = make_value(self._name, number)
        self._count(1)
        try:
            future = self._producer.send(topic, value, partition=partition)
        except KafkaError as error:
            self._on_failed(mark_of(value), error)
            return
        future.add_callback(partial(self._on_acknowledged, now_ns(), mark_of(value)))
        future.add_errback(partial(self._on_failed, mark_of(value)))

    # Called by the client's own thread; an entry is one write.
    def _on_acknowledged(self, sent_ns: int, mark: str, found: RecordMetadata) -> None:
        self._count(-1)
        self._ledger.add(
            Acknowledged(now_ns(), sent_ns, found.topic, found.partition, found.offset, mark)
        )

    def _on_failed(self, mark: str, error: BaseException) -> None:
        self._count(-1)
        self._ledger.add(Failed(now_ns(), mark, type(error).__name__))

    def _count(self, change: int) -> None:
        with self._lock:
            self.waiting += change


def main() -> None:
    """Until SIGTERM, and then until everything is acknowledged or given up."""
    told = parse_arguments()
    stop = Stop()
    ledger = LedgerWriter(told.ledger, Client(told.name, acks=-1 if told.acks == "all" else 1))
    writer = Writer(told, ledger)
    pace = Pace(told.partitions, told.per_second)
    while not stop.is_asked:
        if writer.waiting < WAITING_MAX:
            for number, topic, partition in pace.due():
                writer.send(number, topic, partition)
        time.sleep(POLL_S)
    while writer.waiting:
        time.sleep(POLL_S)


if __name__ == "__main__":
    main()
