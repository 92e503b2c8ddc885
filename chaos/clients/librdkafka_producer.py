"""librdkafka through confluent-kafka: idempotent, acks=all, never gives a record up."""

from functools import partial

from confluent_kafka import KafkaError, Message, Producer

from chaos.clients.command_line import Arguments, Stop, parse_arguments
from chaos.clients.pace import Pace
from chaos.clients.security import PasswordWatch, librdkafka
from chaos.ledger import UNKNOWN_OFFSET, Acknowledged, Client, Failed, LedgerWriter, now_ns
from chaos.records import make_value, mark_of

POLL_S = 0.02
GIVE_UP_MS = 3_600_000
WAITING_MAX = 2_000


class Writer:
    """Sends records and writes down what came of each."""

    def __init__(self, told: Arguments, ledger: LedgerWriter) -> None:
        self.waiting = 0
        name = told.name
        self._name = name
        self._ledger = ledger
        self._producer = Producer(
            {
                "bootstrap.servers": told.bootstrap,
                "client.id": name,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 5,
                "compression.type": "lz4",
                "message.timeout.ms": GIVE_UP_MS,
                # A client notices a frozen broker only by its own time-out, 60 s by default.
                "socket.timeout.ms": 6_000,
                "request.timeout.ms": 5_000,
                "reconnect.backoff.max.ms": 500,
                "retry.backoff.ms": 50,
                "retry.backoff.max.ms": 500,
                "error_cb": self._on_error,
                "log_level": 2,
                **librdkafka(told.client_config),
            }
        )
        self._passwords = PasswordWatch(told.client_config, self._producer.set_sasl_credentials)

    def send(self, number: int, topic: str, partition: int) -> None:
        """One record."""
        self.waiting += 1
        self._producer.produce(
            topic,
            make_value(self._name, number),
            partition=partition,
            on_delivery=partial(self._on_delivery, now_ns()),
        )

    def poll(self, seconds: float = POLL_S) -> None:
        """Take in acknowledgements, and the user's new password if there is one."""
        self._passwords.look()
        self._producer.poll(seconds)

    def _on_delivery(self, sent_ns: int, error: KafkaError | None, message: Message) -> None:
        self.waiting -= 1
        mark = mark_of(message.value())
        if error is not None:
            self._ledger.add(Failed(now_ns(), mark, error.name()))
            return
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None and partition is not None
        if offset is None:
            offset = UNKNOWN_OFFSET  # Acknowledged by the answer to a later batch alone.
        self._ledger.add(Acknowledged(now_ns(), sent_ns, topic, partition, offset, mark))

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self._ledger.add(Failed(now_ns(), self._name, f"fatal: {error.name()}"))


def main() -> None:
    """Until SIGTERM, and then until everything is acknowledged."""
    told = parse_arguments()
    stop = Stop()
    ledger = LedgerWriter(told.ledger, Client(told.name, acks=-1, is_idempotent=True))
    writer = Writer(told, ledger)
    pace = Pace(told.partitions, told.per_second)
    while not stop.is_asked:
        if writer.waiting < WAITING_MAX:
            for number, topic, partition in pace.due():
                writer.send(number, topic, partition)
        writer.poll()
    while writer.waiting:
        writer.poll()


if __name__ == "__main__":
    main()
