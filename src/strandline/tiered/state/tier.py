"""The tier of one partition: what each bucket holds, as the group's log says.

How:    markers of the committed log, in order --apply--> the state; the same on every replica
        Every marker moves `lineage`, a hash of all markers so far. Two replicas with one lineage
        have one state, so a checkpoint that has it need not be read.
Owns:   one state per replica; only the component that applies the log changes it.
Source: decision 0057."""

import hashlib
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from strandline.model.ids import Epoch, Index, Offset
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.state.bucket import BucketState, entries_between
from strandline.tiered.state.commands import Checkpoint, Command, Intend, IntendReplace
from strandline.tiered.state.encoding import encode
from strandline.tiered.state.transitions import Refusal

BUCKETS_MAX = 64
OBJECTS_MAX = 100_000
"""Of one partition, in all buckets: a checkpoint of so many takes 20 MB, and 0.2 s to be taken in.
Further uploads wait until retention, or a collector, has removed some."""
LINEAGE_BYTES = 16
_NO_LINEAGE = bytes(LINEAGE_BYTES)


class Stretch(NamedTuple):
    """The records of [start, end) are live in a bucket."""

    bucket: str
    start: Offset
    end: Offset


class TierState:
    """See the module. Offsets of ranges are half-open."""

    __slots__ = ("_buckets", "deleted_before", "epoch", "index", "lineage", "refused_count")

    def __init__(self) -> None:
        self._buckets: dict[str, BucketState] = {}
        self.index = Index(-1)
        """Of the last marker applied or refused; -1 for none."""
        self.epoch = Epoch(0)
        """Of that marker."""
        self.lineage = _NO_LINEAGE
        """Hash of all markers so far, and of their indexes."""
        self.deleted_before = Offset(0)
        """DeleteRecords has removed the records below this offset."""
        self.refused_count = 0
        """Commands that did not fit."""

    # ---- the log ---------------------------------------------------------------------------------

    def apply(
        self, index: Index, epoch: Epoch, command: Command, *, log_end: Offset
    ) -> Refusal | None:
        """Apply the committed command at `index`; `log_end` is the offset after the records before
        it. Why it does not fit, or None; then nothing but the lineage has changed."""
        self._advance(index, epoch, encode(command))
        known = self._buckets.get(command.bucket)
        is_full = isinstance(command, Intend) and self._object_count >= OBJECTS_MAX
        if is_full or (known is None and len(self._buckets) >= BUCKETS_MAX):
            refusal: Refusal | None = Refusal.TOO_MANY
        else:
            bucket = BucketState() if known is None else known
            refusal = bucket.apply(command, log_end)
            if refusal is None and known is None:
                self._buckets[command.bucket] = bucket
        self.refused_count += refusal is not None
        return refusal

    @property
    def _object_count(self) -> int:
        return sum(len(one.live) + len(one.removals) for one in self._buckets.values())

    def delete_records(self, index: Index, epoch: Epoch, before: Offset) -> None:
        """Apply the committed deletion at `index`: the records below `before` are deleted."""
        self._advance(index, epoch, before.to_bytes(8))
        self.deleted_before = max(self.deleted_before, before)

    def _advance(self, index: Index, epoch: Epoch, payload: bytes) -> None:
        assert index > self.index, f"index {index} after {self.index}"
        assert epoch >= self.epoch, f"epoch {epoch} after {self.epoch}"
        self.index, self.epoch = index, epoch
        head = self.lineage + index.to_bytes(8)
        self.lineage = hashlib.blake2b(head + payload, digest_size=LINEAGE_BYTES).digest()

    # ---- checkpoints -----------------------------------------------------------------------------

    def checkpoint(self) -> Checkpoint:
        """All of it, for a marker that follows the last one of `index`."""
        return Checkpoint(
            self.index,
            self.epoch,
            self.lineage,
            self.deleted_before,
            self.refused_count,
            tuple(self._buckets[name].image(name) for name in sorted(self._buckets)),
        )

    @classmethod
    def restored(cls, checkpoint: Checkpoint) -> "TierState":
        """The state of a checkpoint."""
        state = cls()
        state.index, state.epoch = checkpoint.index, checkpoint.epoch
        state.lineage = checkpoint.lineage
        state.deleted_before = checkpoint.deleted_before
        state.refused_count = checkpoint.refused_count
        for image in checkpoint.buckets:
            state._buckets[image.bucket] = BucketState.restored(image)
        return state

    # ---- questions -------------------------------------------------------------------------------

    @property
    def is_blank(self) -> bool:
        """Whether no bucket was ever used."""
        return not self._buckets

    @property
    def buckets(self) -> Mapping[str, BucketState]:
        """{name: state} of every bucket that was ever used. Read it only."""
        return self._buckets

    def live(self, bucket: str) -> Sequence[SegmentEntry]:
        """The live objects, ascending. The state's own list: copy it to keep it."""
        known = self._buckets.get(bucket)
        return () if known is None else known.live

    def pending(self, bucket: str) -> Sequence[Intend]:
        """The outstanding uploads. The state's own list."""
        known = self._buckets.get(bucket)
        return () if known is None else known.intents

    def start(self, bucket: str) -> Offset:
        """The first live offset; `live_end` where none is live."""
        known = self._buckets.get(bucket)
        return Offset(0) if known is None else known.start_offset

    def live_end(self, bucket: str) -> Offset:
        """Where the last live object ends; where none is live, the end of the last that was; 0
        for a bucket that was never used."""
        known = self._buckets.get(bucket)
        return Offset(0) if known is None else known.end_offset

    def next_offset(self, bucket: str) -> Offset:
        """Where the next live object has to begin, or above it where none is live."""
        known = self._buckets.get(bucket)
        return Offset(0) if known is None else known.next_offset

    def size_bytes(self, bucket: str) -> int:
        """Bytes of the live objects."""
        known = self._buckets.get(bucket)
        return 0 if known is None else known.size_bytes

    def find(self, bucket: str, offset: Offset) -> SegmentEntry | None:
        """The live object of a bucket that has the record at `offset`."""
        known = self._buckets.get(bucket)
        return None if known is None else known.find(offset)

    def replacement(self, bucket: str) -> IntendReplace | None:
        """The intent of the replacement under way; None for none."""
        known = self._buckets.get(bucket)
        return None if known is None else known.replacement

    @property
    def clean_before(self) -> Offset | None:
        """Of a compacted topic: no record below this offset, in any bucket that is in use, has a
        key that another one below it has later; None if no bucket is in use."""
        used = [one.clean_before for one in self._buckets.values() if one.is_in_use]
        return min(used) if used else None

    def stretches(self, local_start: Offset) -> list[Stretch]:
        """Ascending and without a gap: where the records before `local_start` are, back to the
        first that can be reached so. Buckets bridge each other's gaps."""
        found: list[Stretch] = []
        reach = local_start
        runs = {name: one for name, one in self._buckets.items() if one.live}
        while True:
            reaching = [
                (one.start_offset, name)
                for name, one in runs.items()
                if one.start_offset < reach <= one.end_offset
            ]
            if not reaching:
                return found[::-1]
            start, name = min(reaching)
            found.append(Stretch(name, start, reach))
            reach = start

    def start_offset(self, local_start: Offset) -> Offset:
        """Where the partition begins, on a replica whose log begins at `local_start`."""
        stretches = self.stretches(local_start) if self._buckets else ()
        start = stretches[0].start if stretches else local_start
        return max(start, self.deleted_before)

    def covered_end(
        self,
        copies_min: int,
        buckets: Collection[str],
        *,
        from_offset: Offset,
        wrong: Collection[str] = (),
    ) -> Offset:
        """Local records of [from_offset, this) are no longer needed: at least `copies_min` of
        `buckets` have all of them live, or had until the topic needed them no more. 0 means all of
        the buckets; no bucket covers nothing, nor does one that was emptied, or is `wrong`."""
        needed = copies_min if 0 < copies_min <= len(buckets) else len(buckets)
        held = (one for one in buckets if one not in wrong)
        ends = sorted((self._covered_by(one, from_offset) for one in held), reverse=True)
        return max(ends[needed - 1], from_offset) if len(ends) >= needed > 0 else from_offset

    def _covered_by(self, name: str, from_offset: Offset) -> Offset:
        bucket = self._buckets.get(name)
        if bucket is None or bucket.start_offset > max(from_offset, bucket.retired_before):
            return from_offset
        return bucket.end_offset if bucket.live else bucket.retired_before

    def epoch_at(self, offset: Offset, *, local_start: Offset) -> Epoch:
        """The epoch of the record at `offset`, which lies before `local_start` and is live."""
        for bucket, start, end in self.stretches(local_start):
            if start <= offset < end:
                entry = self._buckets[bucket].find(offset)
                assert entry is not None, f"offset {offset} is in no object of {bucket}"
                at = bisect_right(entry.epochs, offset, key=_epoch_start) - 1
                return entry.epochs[max(at, 0)][0]
        raise AssertionError(f"offset {offset} is in no bucket")

    def epoch_end_offset(
        self, epoch: Epoch, *, local_start: Offset, local_epoch: Epoch
    ) -> tuple[Epoch, Offset]:
        """(the greatest epoch <= `epoch`, where it ends), for an epoch below `local_epoch`, that of
        the first local entry. An epoch from before the partition ends where that begins."""
        assert epoch < local_epoch, f"epoch {epoch} is in the local log, from {local_epoch} on"
        known: Epoch | None = None
        for bucket, start, end in self.stretches(local_start):
            entries = entries_between(self._buckets[bucket].live, start, end)
            at = bisect_right(entries, epoch, key=_first_epoch) - 1
            later = list(entries[at + 1].epochs) if at + 1 < len(entries) else []
            if at >= 0:
                inside = bisect_right(entries[at].epochs, epoch, key=_epoch_of)
                known = entries[at].epochs[inside - 1][0]
                later = [*entries[at].epochs[inside:], *later]
            if later and known is not None:
                return known, later[0][1]
            if later:
                break
        return (epoch, self.start_offset(local_start)) if known is None else (known, local_start)


def _first_epoch(entry: SegmentEntry) -> Epoch:
    return entry.epochs[0][0]


def _epoch_start(epoch: tuple[Epoch, Offset]) -> Offset:
    return epoch[1]


def _epoch_of(epoch: tuple[Epoch, Offset]) -> Epoch:
    return epoch[0]
