"""Builds the object of one segment from the batches of a log: data, then the trailer.

Why:    an object outlives the log it was made from, so each batch is checked on the way into it:
        its checksum, and that it follows the one before.
How:    new --add(whole data batches)--> ... --finish--> parts of the object, and its entry
        Markers are left out: they take no offset, and the trailer has the epochs.
        An empty batch of a compacted log may reach beyond the object: it is cut.
Owns:   the buffers that were added, until the writer is dropped. It never changes them.
Source: decision 0057."""

from array import array
from collections.abc import Iterable
from typing import NamedTuple

from fastcrc import crc32

from strandline.base.disk import Buffer
from strandline.base.errors import ApiError
from strandline.model.ids import Epoch, Offset
from strandline.records.batch import BatchHeader, crc_matches, iterate_headers
from strandline.records.cleaning import filler, is_filler
from strandline.records.codec import DECOMPRESSED_BYTES_MAX
from strandline.records.record_times import first_record_since
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.trailer import (
    CHUNK_BYTES,
    DATA_BYTES_MAX,
    INDEX_INTERVAL_BYTES,
    OFFSET_COUNT_MAX,
    ProducerBatch,
    ProducerState,
    Trailer,
)

PRODUCERS_MAX = 10_000
"""Producers in one trailer: the last to write. About 60 bytes each."""
_WINDOW_BATCHES = 5
"""Kafka's clients have at most five requests in flight."""
_SEQUENCE_COUNT = 1 << 31


class UnfitBatchError(Exception):
    """A batch is damaged, or does not follow the one before: no object is made."""


class SegmentObject(NamedTuple):
    """One object, ready to be stored. `parts`: the data as it was added, and the trailer."""

    parts: list[Buffer]
    entry: SegmentEntry
    trailer: Trailer


class SegmentWriter:
    """See the module. `producers`: those of the log at `base_offset`, if known."""

    def __init__(
        self,
        base_offset: Offset,
        end_offset: Offset,
        *,
        producers: Iterable[ProducerState] = (),
        misses_producers: bool = True,
    ) -> None:
        assert base_offset < end_offset, f"an object of no records: {base_offset}..{end_offset}"
        if end_offset - base_offset > OFFSET_COUNT_MAX:
            raise UnfitBatchError(f"{end_offset - base_offset} offsets do not fit into one object")
        self._base_offset = base_offset
        self._end_offset = end_offset
        self._next_offset = base_offset
        self._parts: list[Buffer] = []
        self._size_bytes = 0
        self._indexed_to = 0
        self._offsets, self._positions = array("I"), array("I")
        self._timestamps = array("q")
        self._chunk_crcs = array("I")
        self._chunk_crc = 0
        self._epochs: list[tuple[Epoch, Offset]] = []
        self._max_timestamp = -1
        self._latest: tuple[Buffer, BatchHeader] | None = None
        """The first batch that reaches `_max_timestamp`: (buffer, header)."""
        self._latest_offset: Offset | None = None
        """Of that batch's first record with that timestamp, once it has been looked for."""
        self._producers = {one.producer_id: one for one in producers}
        self._misses_producers = misses_producers
        self._carried: dict[int, ProducerState] = {}

    @property
    def next_offset(self) -> Offset:
        """Where the next batch has to begin."""
        return self._next_offset

    @property
    def end_offset(self) -> Offset:
        """Where the object ends, once it has all batches."""
        return self._end_offset

    @property
    def size_bytes(self) -> int:
        """Data so far."""
        return self._size_bytes

    def add(self, data: Buffer) -> None:
        """Add whole batches; markers among them are left out. Raises UnfitBatchError."""
        if self.add_whole(data) != len(data):
            raise UnfitBatchError(f"the batch at offset {self._next_offset} is cut")

    def add_whole(self, data: Buffer) -> int:
        """Add the whole batches at the beginning of `data`, and leave a cut one at its end; how
        many bytes they have. Raises UnfitBatchError."""
        view = memoryview(data)
        start = end = 0
        try:
            for header in iterate_headers(view):
                if header.is_marker:
                    self._take(view[start:end])
                    start = end = header.position + header.size
                    continue
                if self._reaches_beyond(header):
                    self._take(view[start:end])
                    start = end = header.position + header.size
                    self._add_cut(view, header)
                    continue
                self._check(view, header)
                self._note(view, header, self._size_bytes + header.position - start)
                end = header.position + header.size
        except ApiError as error:
            raise UnfitBatchError(f"after offset {self._next_offset}: {error}") from error
        self._take(view[start:end])
        if self._next_offset == self._end_offset:  # On the caller's thread, not on the loop's.
            self._latest_offset = self._max_timestamp_offset()
        return end

    def finish(self, name: str) -> SegmentObject:
        """The object, stored as `name`. Raises UnfitBatchError if batches are missing."""
        if self._next_offset != self._end_offset:
            raise UnfitBatchError(f"ends at {self._next_offset}, not at {self._end_offset}")
        if self._size_bytes % CHUNK_BYTES:
            self._chunk_crcs.append(self._chunk_crc)
        latest = self._latest_offset
        if latest is None:
            latest = self._max_timestamp_offset()
        found = self._producers | self._carried
        producers = sorted(found.values(), key=_last_offset)[-PRODUCERS_MAX:]
        trailer = Trailer(
            base_offset=self._base_offset,
            end_offset=self._end_offset,
            data_bytes=self._size_bytes,
            max_timestamp=self._max_timestamp,
            max_timestamp_offset=latest,
            offsets=self._offsets,
            positions=self._positions,
            timestamps=self._timestamps,
            chunk_crcs=self._chunk_crcs,
            epochs=tuple(self._epochs),
            producers=tuple(producers),
            misses_producers=self._misses_producers or len(producers) < len(found),
        )
        encoded = trailer.encode()
        entry = SegmentEntry(
            name=name,
            base_offset=self._base_offset,
            end_offset=self._end_offset,
            data_bytes=self._size_bytes,
            size_bytes=self._size_bytes + len(encoded),
            trailer_crc=crc32.iscsi(encoded),
            max_timestamp=self._max_timestamp,
            max_timestamp_offset=trailer.max_timestamp_offset,
            epochs=trailer.epochs,
            digest=trailer.digest(),
        )
        return SegmentObject([*self._parts, encoded], entry, trailer)

    def carry(self, replaced: Trailer) -> None:
        """This object takes the place of the one with this trailer, of others before it: it has
        all producers that they have, also those whose batches are gone."""
        self._misses_producers |= replaced.misses_producers
        for one in replaced.producers:
            known = self._carried.get(one.producer_id)
            self._carried[one.producer_id] = one if known is None else _joined(known, one)

    # ---- one batch ----

    def _reaches_beyond(self, header: BatchHeader) -> bool:
        """Whether it is an empty batch of which the object has a part only, or nothing."""
        return is_filler(header) and (
            header.base_offset < self._next_offset or header.next_offset > self._end_offset
        )

    def _add_cut(self, view: memoryview, header: BatchHeader) -> None:
        """Add the part of an empty batch that is within the object. Raises UnfitBatchError."""
        if not crc_matches(view, header):
            raise UnfitBatchError(f"the batch at offset {header.base_offset} is damaged")
        base = Offset(max(header.base_offset, self._next_offset))
        end = Offset(min(header.next_offset, self._end_offset))
        if base < end:
            self.add(filler(base, end, header.partition_leader_epoch))

    def _check(self, view: memoryview, header: BatchHeader) -> None:
        """Raises UnfitBatchError unless this batch comes next, undamaged."""
        if header.base_offset != self._next_offset or header.next_offset > self._end_offset:
            raise UnfitBatchError(
                f"a batch of {header.base_offset}..{header.last_offset}, where {self._next_offset} "
                f"comes next and {self._end_offset} ends the object"
            )
        if not crc_matches(view, header):
            raise UnfitBatchError(f"the batch at offset {header.base_offset} is damaged")
        if self._epochs and header.partition_leader_epoch < self._epochs[-1][0]:
            raise UnfitBatchError(f"the epoch goes back at offset {header.base_offset}")

    def _note(self, view: memoryview, header: BatchHeader, position: int) -> None:
        """Account for a batch that will lie at `position` of the object."""
        if position - self._indexed_to >= INDEX_INTERVAL_BYTES:
            self._indexed_to = position
            self._offsets.append(header.base_offset - self._base_offset)
            self._positions.append(position)
            self._timestamps.append(self._max_timestamp)
        if not self._epochs or header.partition_leader_epoch != self._epochs[-1][0]:
            self._epochs.append((header.partition_leader_epoch, header.base_offset))
        if header.max_timestamp > self._max_timestamp:
            self._max_timestamp = header.max_timestamp
            self._latest = (view, header)
            self._latest_offset = None
        if header.producer_id >= 0 and header.base_sequence >= 0:
            self._producers[header.producer_id] = _advance(
                self._producers.get(header.producer_id), header
            )
        self._next_offset = header.next_offset

    def _take(self, data: memoryview) -> None:
        """Add bytes to the data, and to the checksums of its chunks."""
        if not data:
            return
        if self._size_bytes + len(data) > DATA_BYTES_MAX:
            raise UnfitBatchError(f"more than {DATA_BYTES_MAX} bytes do not fit into one object")
        self._parts.append(data)
        at = 0
        while at < len(data):
            room = CHUNK_BYTES - self._size_bytes % CHUNK_BYTES
            part = data[at : at + room]
            self._chunk_crc = crc32.iscsi(part, self._chunk_crc)
            self._size_bytes += len(part)
            at += len(part)
            if len(part) == room:
                self._chunk_crcs.append(self._chunk_crc)
                self._chunk_crc = 0

    def _max_timestamp_offset(self) -> Offset:
        """The first record with the highest timestamp. Raises UnfitBatchError."""
        if self._latest is None:
            return Offset(-1)
        view, header = self._latest
        try:
            found = first_record_since(
                view, header, self._max_timestamp, bytes_max=DECOMPRESSED_BYTES_MAX
            )
        except ApiError as error:
            raise UnfitBatchError(f"the batch at {header.base_offset}: {error}") from error
        # A batch's header may claim more than its records.
        return Offset(header.last_offset) if found is None else found[1]


def _advance(state: ProducerState | None, header: BatchHeader) -> ProducerState:
    last_sequence = (header.base_sequence + header.last_offset_delta) % _SEQUENCE_COUNT
    batch = ProducerBatch(
        header.base_sequence, last_sequence, header.base_offset, header.last_offset
    )
    window: tuple[ProducerBatch, ...] = (batch,)
    if state is not None and state.epoch == header.producer_epoch:
        window = state.window[1 - _WINDOW_BATCHES :] + window
    return ProducerState(header.producer_id, header.producer_epoch, header.max_timestamp, window)


def _joined(earlier: ProducerState, later: ProducerState) -> ProducerState:
    """What is known of a producer by two objects, one behind the other."""
    if earlier.epoch != later.epoch:
        return later
    known = {one.base_offset for one in later.window}
    before = tuple(one for one in earlier.window if one.base_offset not in known)
    window = (before + later.window)[-_WINDOW_BATCHES:]
    return ProducerState(later.producer_id, later.epoch, later.last_timestamp, window)


def _last_offset(state: ProducerState) -> int:
    return state.window[-1].last_offset if state.window else -1
