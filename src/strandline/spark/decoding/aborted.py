"""Tells which batches belong to aborted transactions, as Kafka's consumers do.

How:    a Fetch response with isolation read_committed lists (producer id, first offset) of each
        aborted transaction in its range. Batches of that producer are left out from the first
        offset on, up to the producer's abort marker.
Owns:   the transactions that are open at the batch under the cursor.
Source: KIP-98; Kafka's CompletedFetch."""

from collections.abc import Sequence
from struct import Struct

from strandline.records.batch import BatchHeader
from strandline.records.record import Record

_MARKER_KEY = Struct(">hh")
_ABORT = 0


class AbortedTransactions:
    """The aborted transactions of one Fetch response; sees each batch in order, once."""

    def __init__(self, aborted: Sequence[tuple[int, int]]) -> None:
        self._to_come = sorted(aborted, key=lambda one: -one[1])
        self._open: set[int] = set()

    def is_empty(self) -> bool:
        """Whether no transaction of the response was aborted."""
        return not self._to_come and not self._open

    def has(self, header: BatchHeader) -> bool:
        """Whether the records of this batch are those of an aborted transaction, its marker
        excepted."""
        while self._to_come and self._to_come[-1][1] <= header.last_offset:
            self._open.add(self._to_come.pop()[0])
        return (
            header.is_transactional and not header.is_control and header.producer_id in self._open
        )

    def end(self, header: BatchHeader, marker: Record) -> None:
        """Take in the record of a control batch: an abort marker ends its transaction."""
        key = marker.key or b""
        if len(key) >= _MARKER_KEY.size and _MARKER_KEY.unpack_from(key)[1] == _ABORT:
            self._open.discard(header.producer_id)
