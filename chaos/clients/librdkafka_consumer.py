"""A member of a group, with librdkafka: reads from the committed offsets, and commits its own.

How:    when it gets partitions it asks for the committed offsets, and begins there; a commit waits
        for its answer. Partitions move when members come and go, and when a cut ends a session."""

import time

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from chaos.clients.command_line import Arguments, Stop, parse_arguments
from chaos.clients.positions import Place, Positions
from chaos.clients.security import is_of_a_login, is_refused_login, librdkafka
from chaos.ledger import Client, Failed, LedgerWriter, now_ns
from chaos.records import mark_of

POLL_S = 0.1
POLL_RECORDS = 500
ASK_TIMEOUT_S = 5.0
COMMIT_INTERVAL_S = 0.5


class Reader:
    """One member."""

    def __init__(self, told: Arguments, ledger: LedgerWriter) -> None:
        self._ledger = ledger
        self._positions = Positions(ledger)
        self._found: dict[Place, list[tuple[int, str]]] = {}
        self._consumer = Consumer(
            {
                "bootstrap.servers": told.bootstrap,
                "client.id": told.name,
                "group.id": told.group,
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "session.timeout.ms": 8_000,
                "heartbeat.interval.ms": 1_000,
                "socket.timeout.ms": 6_000,
                "reconnect.backoff.max.ms": 500,
                "error_cb": self._on_error,
                "log_level": 2,
                **librdkafka(told.client_config),
            }
        )
        self._consumer.subscribe(
            list(told.topics),
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=self._on_revoke,
        )

    def read(self) -> None:
        """What there is. Partitions may move with any of the polls."""
        wait_s = POLL_S
        for _ in range(POLL_RECORDS):
            message = self._consumer.poll(wait_s)
            if message is None:
                break
            wait_s = 0
            error = message.error()
            if error is None:
                self._found.setdefault(_place(message), []).append(_entry(message))
            elif not error.retriable() and not is_of_a_login(error):
                self._ledger.add(Failed(now_ns(), "read", error.name()))
        self._note()

    def _on_error(self, error: KafkaError) -> None:
        if is_refused_login(error):
            self._ledger.add(Failed(now_ns(), "a login", error.name()))

    def _note(self) -> None:
        """Write down what was found, while the partitions are still this member's."""
        for place, records in self._found.items():
            self._positions.note(place, records)
        self._found = {}

    def commit(self) -> None:
        """Everything that was read."""
        due = self._positions.begin_commit()
        if not due:
            return
        try:
            answers = self._consumer.commit(
                offsets=[TopicPartition(*place, offset) for place, offset in due.items()],
                asynchronous=False,
            )
        except KafkaException:
            return
        self._positions.end_commit(
            due, [(one.topic, one.partition) for one in answers or [] if one.error is None]
        )

    def close(self) -> None:
        """Leave the group."""
        self.commit()
        self._consumer.close()

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._note()
        asked_ns = now_ns()
        told: list[TopicPartition] = []
        while partitions and not told:
            try:
                told = consumer.committed(partitions, timeout=ASK_TIMEOUT_S)
            except KafkaException:
                pass
            if not told or any(one.error is not None for one in told):
                asked_ns, told = now_ns(), []
        self._positions.begin_life()
        for one in told:
            offset = max(one.offset, -1)
            self._positions.begin((one.topic, one.partition), offset, asked_ns=asked_ns)
            one.offset = OFFSET_BEGINNING if offset < 0 else offset
        consumer.assign(told)

    def _on_revoke(self, consumer: Consumer, _: list[TopicPartition]) -> None:
        self._note()
        self._positions.forget()
        consumer.unassign()


def _place(message: Message) -> Place:
    topic, partition = message.topic(), message.partition()
    assert topic is not None and partition is not None
    return topic, partition


def _entry(message: Message) -> tuple[int, str]:
    offset, value = message.offset(), message.value()
    assert offset is not None
    return offset, mark_of(value)


def main() -> None:
    """Until SIGTERM."""
    told = parse_arguments()
    stop = Stop()
    reader = Reader(told, LedgerWriter(told.ledger, Client(told.name, group=told.group)))
    committed_at = time.monotonic()
    while not stop.is_asked:
        reader.read()
        if time.monotonic() - committed_at > COMMIT_INTERVAL_S:
            reader.commit()
            committed_at = time.monotonic()
    reader.close()


if __name__ == "__main__":
    main()
