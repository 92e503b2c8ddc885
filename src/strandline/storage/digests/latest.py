"""Digests of the last record of each key: what every replica of a compacted log must have.

Why:    each replica compacts at its own time, so equal logs have other bytes, other batches, and
        records that others have removed. The table that a reader builds is the same.
How:    one walk from the start of the first range to the end of the last. A later record of a key
        takes the earlier one out of its range's sum; a tombstone only takes out. Records without
        a key are left out: compaction removes them. Markers stay, so they are digested.
        The keys of one share are kept as hashes, in many small dictionaries: a large one would
        hold the interpreter while it grows. If a share has too many keys, the caller asks for
        smaller shares.
Owns:   the keys of one request.
Source: decisions 0037 and 0052."""

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from struct import Struct

from strandline.base.disk import Buffer
from strandline.base.errors import ApiError
from strandline.model.ids import Offset
from strandline.records.batch import BatchHeader
from strandline.records.record import ITEMS_MAX, Record, decode_records
from strandline.storage.digests.contents import canonical
from strandline.storage.digests.ranges import (
    DIGEST_BYTES,
    NO_OFFSET,
    Digested,
    OffsetRange,
    RangeDigest,
)
from strandline.storage.digests.source import SourcePart
from strandline.storage.digests.walk import Pace, VerifiedWalk

KEY_BYTES = 250
"""About what one key costs: its hash, its record's hash and place, and the dictionary's entry."""
_DICTIONARIES = 256
_MODULUS = 1 << (8 * DIGEST_BYTES)
_EPOCH = Struct(">i")


@dataclass(frozen=True, slots=True)
class KeyShare:
    """Keys whose hash is `number` modulo `count`."""

    number: int = 0
    count: int = 1


class _Sum:
    """What one range has so far."""

    __slots__ = ("batches", "markers", "records", "size_bytes", "total")

    def __init__(self) -> None:
        self.records = self.batches = self.markers = self.size_bytes = self.total = 0

    def done(self) -> RangeDigest:
        return RangeDigest(
            records=self.records,
            batches=self.batches,
            markers=self.markers,
            size_bytes=self.size_bytes,
            first_offset=NO_OFFSET,
            last_offset=NO_OFFSET,
            digest=self.total.to_bytes(DIGEST_BYTES, "big"),
        )


class LatestTable:
    """The last record of each key of a share, and the sums of the ranges, which ascend and touch
    each other. `note_record`: called for each record that is decoded."""

    def __init__(
        self,
        ranges: Sequence[OffsetRange],
        share: KeyShare,
        note_record: Callable[[], None] = lambda: None,
        *,
        has_markers: bool = True,
    ) -> None:
        self._has_markers = has_markers
        self.sums = [_Sum() for _ in ranges]
        self.key_count = 0
        self._ranges = ranges
        self._starts = [one.start for one in ranges]
        self._share = share
        self._note_record = note_record
        self._keys: list[dict[bytes, tuple[int, int]]] = [{} for _ in range(_DICTIONARIES)]

    def digests(self) -> tuple[RangeDigest, ...]:
        """Of all ranges."""
        return tuple(one.done() for one in self.sums)

    def add(self, header: BatchHeader, chunk: Buffer, at: int) -> None:
        """Account for a batch."""
        if header.is_marker and not self._has_markers:
            return
        here = self._range_at(header.base_offset)
        if header.is_control:
            self._add_raw(header, chunk, at, here)
            return
        if here >= 0:
            self.sums[here].batches += 1
            self.sums[here].size_bytes += header.size
        if not header.records_count or header.last_offset < self._starts[0]:
            return
        try:
            records = decode_records(chunk, at, items_max=ITEMS_MAX)
        except ApiError:  # Compaction leaves it as it is.
            self._add_raw(header, chunk, at, here)
            return
        epoch = _EPOCH.pack(header.partition_leader_epoch)
        for record in records:
            self._note_record()
            offset = Offset(header.base_offset + record.offset_delta)
            if record.key is not None and self._range_at(offset) >= 0:
                self._add_record(offset, record, epoch)

    def _add_record(self, offset: Offset, record: Record, epoch: bytes) -> None:
        assert record.key is not None
        key = hashlib.sha256(record.key).digest()
        if int.from_bytes(key[24:], "big") % self._share.count != self._share.number:
            return
        keys = self._keys[key[0]]
        earlier = keys.pop(key[:DIGEST_BYTES], None)
        if earlier is not None:
            value, at = earlier
            self.sums[at].total = (self.sums[at].total - value) % _MODULUS
            self.sums[at].records -= 1
            self.key_count -= 1
        if record.value is not None:
            value, at = _number(epoch + canonical(offset, record)), self._range_at(offset)
            keys[key[:DIGEST_BYTES]] = value, at
            self.sums[at].total = (self.sums[at].total + value) % _MODULUS
            self.sums[at].records += 1
            self.key_count += 1

    def _add_raw(self, header: BatchHeader, chunk: Buffer, at: int, at_range: int) -> None:
        """Add a batch as it is; in the first share only."""
        if at_range < 0 or self._share.number:
            return
        target, wanted = self.sums[at_range], self._ranges[at_range]
        if header.is_marker:
            if header.base_offset == wanted.start and not wanted.first_markers:
                return
            target.markers += 1
        raw = bytes(memoryview(chunk)[at : at + header.size])
        target.total = (target.total + _number(raw)) % _MODULUS

    def _range_at(self, offset: Offset) -> int:
        """The range that holds the offset; -1 for none."""
        at = bisect_right(self._starts, offset) - 1
        return at if at >= 0 and offset < self._ranges[at].end else -1


def digest_latest(
    parts: Sequence[SourcePart],
    ranges: Sequence[OffsetRange],
    *,
    share: KeyShare,
    keys_max: int,
    pace: Pace,
    evicts: bool = False,
    has_markers: bool = True,
) -> Digested:
    """The digests of LATEST, or without markers of LATEST_RECORDS, of these ranges, which ascend
    and touch each other: all of them, or none where a batch is damaged, the share has more than
    `keys_max` keys, or the pace ended the walk: the table behind that is not known. Raises
    OSError."""
    walk = VerifiedWalk(parts, start=ranges[0].start, end=ranges[-1].end, pace=pace, evicts=evicts)
    table = LatestTable(ranges, share, walk.note_record, has_markers=has_markers)
    for found in walk:
        table.add(*found)
        if table.key_count > keys_max:
            return Digested((), has_too_many_keys=True)
    if walk.is_stopped or walk.damage is not None:
        return Digested((), walk.damage)
    return Digested(table.digests())


def _number(data: bytes) -> int:
    return int.from_bytes(hashlib.sha256(data).digest()[:DIGEST_BYTES], "big")
