"""A member of a group, with aiokafka: the same as `librdkafka_consumer`, with another library."""

import asyncio
import time

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

from chaos.clients.command_line import Arguments, Stop, parse_arguments
from chaos.clients.positions import Positions
from chaos.clients.security import aiokafka
from chaos.ledger import Client, Failed, LedgerWriter, now_ns
from chaos.records import mark_of

POLL_MS = 100
COMMIT_INTERVAL_S = 0.5


class Reader(ConsumerRebalanceListener):  # type: ignore[misc]  # It has no annotations.
    """One member."""

    def __init__(self, told: Arguments, ledger: LedgerWriter) -> None:
        self._ledger = ledger
        self._positions = Positions(ledger)
        self._topics = list(told.topics)
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=told.bootstrap,
            client_id=told.name,
            group_id=told.group,
            enable_auto_commit=False,
            # Only in doubt: `seek` says where to begin, and the ledger tells when it was not so.
            auto_offset_reset="earliest",
            session_timeout_ms=8_000,
            heartbeat_interval_ms=1_000,
            request_timeout_ms=6_000,
            rebalance_timeout_ms=10_000,
            **aiokafka(told.client_config),
        )

    async def start(self) -> None:
        """Begin."""
        await self._consumer.start()
        self._consumer.subscribe(self._topics, listener=self)

    async def read(self) -> None:
        """What there is."""
        try:
            found = await self._consumer.getmany(timeout_ms=POLL_MS)
        except KafkaError as error:
            if not error.retriable:
                self._ledger.add(Failed(now_ns(), "read", type(error).__name__))
            return
        for place, messages in found.items():
            if place not in self._positions:
                continue  # Taken away meanwhile.
            records = [(message.offset, mark_of(message.value)) for message in messages]
            self._positions.note((place.topic, place.partition), records)

    async def commit(self) -> None:
        """Everything that was read."""
        due = self._positions.begin_commit()
        if not due:
            return
        try:
            await self._consumer.commit(
                {TopicPartition(*place): offset for place, offset in due.items()}
            )
        except KafkaError:
            return
        self._positions.end_commit(due, due)

    async def close(self) -> None:
        """Leave the group."""
        await self.commit()
        await self._consumer.stop()

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        """Where the group is, is where this member begins."""
        self._positions.begin_life()
        for place in sorted(assigned):
            asked_ns = now_ns()
            told = await self._consumer.committed(place)
            offset = -1 if told is None else told
            self._positions.begin((place.topic, place.partition), offset, asked_ns=asked_ns)
            self._consumer.seek(place, max(offset, 0))

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        """Nothing that comes of them now is this member's."""
        self._positions.forget()


async def run(told: Arguments, stop: Stop) -> None:
    """Until the end is asked for."""
    reader = Reader(told, LedgerWriter(told.ledger, Client(told.name, group=told.group)))
    await reader.start()
    committed_at = time.monotonic()
    while not stop.is_asked:
        await reader.read()
        if time.monotonic() - committed_at > COMMIT_INTERVAL_S:
            await reader.commit()
            committed_at = time.monotonic()
    await reader.close()


def main() -> None:
    """Until SIGTERM."""
    told = parse_arguments()
    asyncio.run(run(told, Stop()))


if __name__ == "__main__":
    main()
