"""Batches of recognisable values: how producers make them, and how everything else reads them back.

Why:    to judge a history, the simulator must recognise every record wherever it appears.
How:    a value is `producer/number/filling`, and its key follows from it. A tombstone has no value,
        so a header carries the name. The contents of a batch are remembered by its CRC, so that a
        log can be read again and again; the CRC is computed from the bytes each time.
Owns:   that memory; one for each run.
Source: Kafka's message format v2."""

from collections.abc import Sequence

from strandline.model.ids import Offset
from strandline.records.batch import BatchHeader, crc_matches, iterate_headers
from strandline.records.record import Record, build_batch, decode_records
from strandline.simulation.invariants.superseding import is_tombstone, key_of

TOMBSTONE_HEADER = "name"


class Values:
    """See the module."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], list[tuple[int, bytes]]] = {}
        """{(CRC, size): (offset delta, value) of the records in the batch}."""

    def read(self, data: bytes) -> list[tuple[Offset, bytes]]:
        """(offset, value) of every record in whole data batches."""
        found = []
        for header in iterate_headers(data):
            found += self.of_batch(data, header)
        return found

    def of_batch(self, data: bytes, header: BatchHeader) -> list[tuple[Offset, bytes]]:
        """The same for one batch in `data`; none for a marker. Raises ValueError for rot."""
        if not crc_matches(data, header):
            raise ValueError(f"the batch at offset {header.base_offset} has a wrong checksum")
        if header.is_marker:
            return []
        key = (header.crc, header.size)
        values = self._known.get(key)
        if values is None:
            records = decode_records(data, header.position)
            values = self._known[key] = [(r.offset_delta, _known_by(r)) for r in records]
        base = header.base_offset
        return [(Offset(base + delta), value) for delta, value in values]


def _known_by(record: Record) -> bytes:
    if record.value is None and record.headers:
        return record.headers[0][1] or b""
    return record.value or b""


def _record(number: int, value: bytes, *, timestamp_ms: int, key_count: int) -> Record:
    key = key_of(value, key_count)
    if is_tombstone(value):
        return Record(number, timestamp_ms, key, None, ((TOMBSTONE_HEADER, value),))
    return Record(number, timestamp_ms, key, value)


def make_batch(
    values: Sequence[bytes],
    *,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    timestamp_ms: int,
    key_count: int,
) -> bytearray:
    """A batch as a producer sends it; `producer_id` -1: not idempotent. `key_count`: 0 for none."""
    is_idempotent = producer_id >= 0
    return build_batch(
        [
            _record(number, value, timestamp_ms=timestamp_ms, key_count=key_count)
            for number, value in enumerate(values)
        ],
        producer_id=producer_id,
        producer_epoch=producer_epoch if is_idempotent else -1,
        base_sequence=base_sequence if is_idempotent else -1,
    )
