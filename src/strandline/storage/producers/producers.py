"""Idempotence: what each producer wrote last, so that a retry is answered and not appended again.

Why:    a producer that lost an answer sends the batch again; only the log knows that it has it.
How:    per producer the epoch and a window of its last five batches. `check` judges a header;
        `update` follows the log. Entries are immutable, so a checkpoint is a shallow copy.
Owns:   derived from the log: built again from a snapshot and the headers behind it.
Source: Kafka's ProducerAppendInfo and ProducerStateManager; KIP-98, KIP-360."""

from typing import NamedTuple

import msgspec

from strandline.base.errors import ApiError
from strandline.model.ids import Offset
from strandline.protocol.errors import Error
from strandline.records.batch import BatchHeader

WINDOW_BATCHES = 5
"""Kafka's clients have at most five requests in flight."""
_SEQUENCE_COUNT = 1 << 31


class WrittenBatch(NamedTuple):
    """One batch of a producer, as the log has it."""

    first_sequence: int
    last_sequence: int
    base_offset: Offset
    last_offset: int


class ProducerEntry(NamedTuple):
    """One producer: `window` is oldest first and never empty."""

    epoch: int
    last_append_ms: int
    window: tuple[WrittenBatch, ...]


class Duplicate(NamedTuple):
    """The batch is in the log already, at these offsets."""

    base_offset: Offset
    last_offset: int


Producers = dict[int, ProducerEntry]


class ProducerSnapshot(msgspec.Struct, frozen=True, array_like=True):
    """All producers of one log at one place in it."""

    producers: Producers
    has_forgotten: bool


class ProducerStates:
    """All producers of one log, by producer id."""

    __slots__ = ("_producers", "has_forgotten")

    def __init__(self, snapshot: ProducerSnapshot | None = None) -> None:
        self._producers: Producers = {} if snapshot is None else dict(snapshot.producers)
        self.has_forgotten = snapshot is not None and snapshot.has_forgotten
        """Whether a producer that is not known here may have written to this log."""

    def __len__(self) -> int:
        return len(self._producers)

    def get(self, producer_id: int) -> ProducerEntry | None:
        """What is known of a producer."""
        return self._producers.get(producer_id)

    def check(self, header: BatchHeader) -> Duplicate | None:
        """Whether an idempotent batch may be appended: None for yes, or where it already is.

        Raises ApiError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER."""
        return _judge(self._producers.get(header.producer_id), header)

    def update(self, header: BatchHeader, now_ms: int) -> None:
        """Follow a batch that was appended. Batches without a producer change nothing."""
        producer_id = header.producer_id
        if producer_id >= 0 and header.base_sequence >= 0:
            self._producers[producer_id] = _advance(
                self._producers.get(producer_id), header, now_ms
            )

    def expire(self, before_ms: int) -> None:
        """Forget the producers whose last append is older than `before_ms`, a wall time."""
        old = [key for key, entry in self._producers.items() if entry.last_append_ms < before_ms]
        for producer_id in old:
            del self._producers[producer_id]
        self.has_forgotten |= bool(old)

    def checkpoint(self) -> ProducerSnapshot:
        """The present state; to be given to `restore`, or to be written."""
        return ProducerSnapshot(self._producers.copy(), self.has_forgotten)

    def before(self, offset: Offset) -> ProducerSnapshot:
        """As it was when the log ended at `offset`, as far as the windows of now tell: all that
        clients may ask for again, who have at most five batches in flight. Who wrote more since, or
        has begun a new epoch, is forgotten."""
        found: Producers = {}
        for producer_id, entry in self._producers.items():
            window = tuple(one for one in entry.window if one.last_offset < offset)
            if window:
                found[producer_id] = entry._replace(window=window)
        has_forgotten = self.has_forgotten or len(found) < len(self._producers)
        return ProducerSnapshot(found, has_forgotten)

    def restore(self, snapshot: ProducerSnapshot) -> None:
        """Go back to a checkpoint; what was forgotten since stays so."""
        self._producers = dict(snapshot.producers)
        self.has_forgotten |= snapshot.has_forgotten


class PendingSequences:
    """Checks batches that will be appended together, each as if those before it already were."""

    __slots__ = ("_pending", "_states")

    def __init__(self, states: ProducerStates) -> None:
        self._states = states
        self._pending: Producers = {}

    def check(self, header: BatchHeader) -> Duplicate | None:
        """As `ProducerStates.check`."""
        entry = self._pending.get(header.producer_id) or self._states.get(header.producer_id)
        return _judge(entry, header)

    def accept(self, header: BatchHeader, now_ms: int) -> None:
        """The batch, stamped with its offset, will be appended."""
        producer_id = header.producer_id
        entry = self._pending.get(producer_id) or self._states.get(producer_id)
        self._pending[producer_id] = _advance(entry, header, now_ms)


def last_sequence(header: BatchHeader) -> int:
    """The sequence of the batch's last record; sequences wrap to 0 after 2^31 - 1."""
    return (header.base_sequence + header.last_offset_delta) % _SEQUENCE_COUNT


def _judge(entry: ProducerEntry | None, header: BatchHeader) -> Duplicate | None:
    if entry is None:
        return None  # Nothing is known, or no longer: Kafka accepts any sequence then.
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
    expected = (entry.window[-1].last_sequence + 1) % _SEQUENCE_COUNT
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
    return ProducerEntry(header.producer_epoch, now_ms, window)
