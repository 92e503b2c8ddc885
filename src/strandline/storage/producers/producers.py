"""Idempotence: the last batches of each producer, so that a retry is not appended twice.

Why:    a producer that missed a response sends the batch again; only the log knows whether it has
        that batch.
How:    per producer its epoch and a window of its last five batches. `check` judges a header;
        `update` follows the log. A producer without an entry may begin at any sequence; a later
        epoch of a known one begins at 0. Entries are immutable, so a checkpoint is a shallow copy.
Owns:   the state of all producers, derived from the log: a snapshot and the headers behind it.
Source: Kafka's ProducerAppendInfo and ProducerStateManager; KIP-98, KIP-360."""

from typing import NamedTuple

import msgspec

from strandline.base.errors import ApiError
from strandline.model.ids import Offset
from strandline.protocol.errors import Error
from strandline.records.batch import BatchHeader

WINDOW_BATCHES = 5
"""Kafka's clients have at most five requests in flight."""
SEQUENCE_COUNT = 1 << 31
"""Sequences wrap to 0 after 2^31 - 1."""


class WrittenBatch(NamedTuple):
    """One batch of a producer in the log."""

    first_sequence: int
    last_sequence: int
    base_offset: Offset
    last_offset: int


class ProducerEntry(NamedTuple):
    """One producer. `window`: its last batches, oldest first, never empty."""

    epoch: int
    last_append_ms: int
    window: tuple[WrittenBatch, ...]


class Duplicate(NamedTuple):
    """The log already has the batch, at these offsets."""

    base_offset: Offset
    last_offset: int


Producers = dict[int, ProducerEntry]


class ProducerSnapshot(msgspec.Struct, frozen=True, array_like=True):
    """All producers of one log at one offset. `is_incomplete`: see `ProducerStates`."""

    producers: Producers
    is_incomplete: bool


class ProducerStates:
    """All producers of one log, by producer id."""

    __slots__ = ("_producers", "is_incomplete")

    def __init__(self, snapshot: ProducerSnapshot | None = None) -> None:
        self._producers: Producers = {} if snapshot is None else dict(snapshot.producers)
        self.is_incomplete = snapshot is not None and snapshot.is_incomplete
        """Whether a producer missing here may have written to this log."""

    def __len__(self) -> int:
        return len(self._producers)

    def get(self, producer_id: int) -> ProducerEntry | None:
        """The state of a producer; None if it is unknown."""
        return self._producers.get(producer_id)

    def items(self) -> list[tuple[int, ProducerEntry]]:
        """Every producer: (id, state)."""
        return list(self._producers.items())

    def check(self, header: BatchHeader) -> Duplicate | None:
        """None if an idempotent batch may be appended; otherwise where the log already has it.

        Raises ApiError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER."""
        return _judge(self._producers.get(header.producer_id), header)

    def update(self, header: BatchHeader, now_ms: int) -> None:
        """Account for an appended batch. Batches without a producer change nothing."""
        producer_id = header.producer_id
        if producer_id >= 0 and header.base_sequence >= 0:
            self._producers[producer_id] = _advance(
                self._producers.get(producer_id), header, now_ms
            )

    def expire(self, before_ms: int) -> None:
        """Remove the producers whose last append is older than `before_ms`, a wall time."""
        old = [key for key, entry in self._producers.items() if entry.last_append_ms < before_ms]
        for producer_id in old:
            del self._producers[producer_id]
        self.is_incomplete |= bool(old)

    def checkpoint(self) -> ProducerSnapshot:
        """A snapshot of the current state, for `restore` or for a file."""
        return ProducerSnapshot(self._producers.copy(), self.is_incomplete)

    def before(self, offset: Offset) -> ProducerSnapshot:
        """The state when the log ended at `offset`, as far as the current windows show it. That
        covers every retry: a client has at most five batches in flight. A producer that wrote more
        than that after `offset`, or began a new epoch, is missing in it."""
        found: Producers = {}
        for producer_id, entry in self._producers.items():
            window = tuple(one for one in entry.window if one.last_offset < offset)
            if window:
                found[producer_id] = entry._replace(window=window)
        is_incomplete = self.is_incomplete or len(found) < len(self._producers)
        return ProducerSnapshot(found, is_incomplete)

    def restore(self, snapshot: ProducerSnapshot) -> None:
        """Return to a checkpoint; producers removed after it stay removed."""
        self._producers = dict(snapshot.producers)
        self.is_incomplete |= snapshot.is_incomplete


def last_sequence(header: BatchHeader) -> int:
    """The sequence of the batch's last record; sequences wrap to 0 after 2^31 - 1."""
    return (header.base_sequence + header.last_offset_delta) % SEQUENCE_COUNT


def _judge(entry: ProducerEntry | None, header: BatchHeader) -> Duplicate | None:
    if entry is None:
        return None  # For an unknown or expired producer, Kafka accepts any sequence.
    if header.producer_epoch < entry.epoch:
        raise ApiError(
            Error.INVALID_PRODUCER_EPOCH,
            f"producer {header.producer_id} has epoch {entry.epoch}, not {header.producer_epoch}",
        )
    first = header.base_sequence
    if header.producer_epoch > entry.epoch:
        if first != 0:
            raise ApiError(
                Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id} begins an epoch with sequence {first}",
            )
        return None
    last = last_sequence(header)
    for batch in entry.window:
        if batch.first_sequence == first and batch.last_sequence == last:
            return Duplicate(batch.base_offset, batch.last_offset)
    expected = (entry.window[-1].last_sequence + 1) % SEQUENCE_COUNT
    if first != expected:
        raise ApiError(
            Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id} sent sequence {first}, expected {expected}",
        )
    return None


def _advance(entry: ProducerEntry | None, header: BatchHeader, now_ms: int) -> ProducerEntry:
    batch = WrittenBatch(
        header.base_sequence, last_sequence(header), header.base_offset, header.last_offset
    )
    window: tuple[WrittenBatch, ...] = (batch,)
    if entry is not None and entry.epoch == header.producer_epoch:
        window = entry.window[1 - WINDOW_BATCHES :] + window
    assert len(window) <= WINDOW_BATCHES, f"a window of {len(window)} batches"
    return ProducerEntry(header.producer_epoch, now_ms, window)
