"""A small history by hand: what three clients saw of one partition, and the logs of two brokers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from chaos.brokers import Led
from chaos.history import History
from chaos.ledger import (
    Acknowledged,
    Client,
    CommitBegun,
    CommitDone,
    Entry,
    LedgerReader,
    LedgerWriter,
    Listed,
    Read,
    Told,
)
from chaos.promises import Judge
from chaos.records import make_value, mark_of
from chaos.replica_logs import find_logs

from strandline.model.ids import Epoch, GroupId, Index, Offset
from strandline.records.batch import HEADER_BYTES
from strandline.records.marker import build_epoch_marker
from strandline.records.record import Record, build_batch

TOPIC, GROUP = "orders", GroupId(7)
WRITER = "rd-east"
NAME = "00000000000000000000-0-0"


def mark(number: int, producer: str = WRITER) -> str:
    """As ledgers have it."""
    return mark_of(make_value(producer, number))


def batch(
    numbers: Sequence[int],
    *,
    offset: int,
    epoch: int = 1,
    producer: str = WRITER,
    codec: int = 0,
    producer_epoch: int = 0,
) -> bytes:
    """Records of a producer, as they lie in a log."""
    records = [
        Record(delta, 1_000, None, make_value(producer, number))
        for delta, number in enumerate(numbers)
    ]
    return bytes(
        build_batch(
            records,
            base_offset=offset,
            epoch=epoch,
            codec=codec,
            producer_id=1_000,
            producer_epoch=producer_epoch,
        )
    )


def marker(*, offset: int, epoch: int) -> bytes:
    """The first entry of an epoch."""
    return bytes(build_epoch_marker(Offset(offset), Epoch(epoch), 1_000))


def acknowledged(at: int, offset: int, number: int, producer: str = WRITER) -> Acknowledged:
    return Acknowledged(at, at - 1, TOPIC, 0, offset, mark(number, producer))


def read(at: int, position: int, records: list[tuple[int, str]]) -> Read:
    return Read(at, 1, TOPIC, 0, position, records)


def listed(at: int, end: int) -> Listed:
    return Listed(at, at + 1, TOPIC, 0, end)


def told(at: int, offset: int) -> Told:
    return Told(at, at + 1, 1, TOPIC, 0, offset)


def committed(at: int, number: int, offset: int) -> list[Entry]:
    return [
        CommitBegun(at, number, TOPIC, 0, offset),
        CommitDone(at + 1, number, TOPIC, 0),
    ]


@dataclass
class Stage:
    """Sound as it is made; a test breaks it. `is_whole`: the replicas agreed in the end."""

    path: Path
    is_whole: bool = True
    writer: list[Entry] = field(default_factory=lambda: list(WRITES))
    reader: list[Entry] = field(default_factory=lambda: list(READS))
    watcher: list[Entry] = field(
        default_factory=lambda: [listed(5, 0), listed(30, 3), listed(60, 5)]
    )
    is_idempotent: bool = True
    leaders: list[Led] = field(
        default_factory=lambda: [Led(1, f"{TOPIC}-0", 1), Led(2, f"{TOPIC}-0", 2)]
    )
    logs: dict[int, list[bytes]] = field(default_factory=lambda: {1: list(LOG), 2: list(LOG)})

    def breaches(self) -> dict[str, str]:
        """The verdict over files that say what is here."""
        ledgers = [
            self._ledger(Client(WRITER, acks=-1, is_idempotent=self.is_idempotent), self.writer),
            self._ledger(Client("board-1", group="board"), self.reader),
            self._ledger(Client("watch-east"), self.watcher),
        ]
        judge = Judge([WRITER] if self.is_idempotent else [])
        history = History(judge, {(TOPIC, 0): GROUP})
        history.replay(ledgers)
        logs = find_logs({broker: self._log(broker) for broker in self.logs})
        commits = {GROUP: Index(6)} if self.is_whole else {}
        history.audit(logs, commits, [TOPIC])
        history.lead(self.leaders)
        return judge.breaches

    def _ledger(self, client: Client, entries: list[Entry]) -> LedgerReader:
        path = self.path / f"{client.name}.jsonl"
        writer = LedgerWriter(path, client)
        for entry in entries:
            writer.add(entry)
        writer.close()
        reader = LedgerReader(path)
        reader.read_on()
        return reader

    def _log(self, broker: int) -> Path:
        data = self.path / f"broker-{broker}"
        directory = data / "logs" / f"{TOPIC}-0.{GROUP}"
        directory.mkdir(parents=True)
        # What a log has set aside at its end is no part of it.
        (directory / f"{NAME}.log").write_bytes(
            b"".join(self.logs[broker]) + bytes(HEADER_BYTES * 3)
        )
        (directory / f"{NAME}.index").write_bytes(b"")
        return data


LOG = [
    marker(offset=0, epoch=1),
    batch([0, 1, 2], offset=0),
    marker(offset=3, epoch=2),
    batch([3, 4], offset=3, epoch=2, codec=3),
]
"""Indexes 0 to 6, offsets 0 to 4."""
WRITES = [acknowledged(10 + number, number, number) for number in range(3)] + [
    acknowledged(40 + number, number, number) for number in (3, 4)
]
READS = [
    told(15, -1),
    read(20, 0, [(0, mark(0)), (1, mark(1))]),
    *committed(22, 1, 2),
    told(25, 2),
    read(50, 2, [(2, mark(2)), (3, mark(3)), (4, mark(4))]),
    *committed(55, 2, 5),
]
