"""Reads a run of objects of a bucket, to be written again as one: merged, or cleaned by key.

Why:    small objects cost requests and memory; a compacted topic's bucket keeps the last
        record of each key only. The bytes stay in the bucket's region, and each chunk is checked.
How:    map of the pass (read once, kept for its other steps)
                     |
        run --chunk by chunk--> cleaned on a thread, a piece at a time --> writer
        After each piece it pauses for four times as long as that took, and no faster than
        `rewrite_bytes_per_s`: it must not be noticed by readers, writers or uploads.
Owns:   the maps of the last passes.
Source: decision 0066."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import NamedTuple

from strandline.base.clock import Clock
from strandline.base.disk import Buffer
from strandline.base.errors import StrandlineError
from strandline.broker.tiering.messages import Cleaning
from strandline.broker.tiering.sources import Moved, ObjectBatches, read_trailer
from strandline.model.ids import GroupId, Offset
from strandline.records.batch import BatchHeader, crc_matches, iterate_headers
from strandline.records.batch_cleaner import BatchCleaner, CleanedBatches
from strandline.records.latest_keys import LatestKeys
from strandline.tiered.objects.limits import Pace
from strandline.tiered.objects.store import ObjectStore
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.writer import SegmentWriter, UnfitBatchError

PIECE_BYTES = 128 << 10
"""Cleaned in one go on a thread."""
PAUSE_FACTOR = 4
KEY_MAPS_MAX = 3
"""Maps of passes that stay in memory; each has at most `compaction_map_bytes`."""
KEPT_MS = 600_000
"""A map that no step has used for so long goes."""


class UnchangedError(StrandlineError):
    """The only object of the run would stay as it is."""


class _Key(NamedTuple):
    """Which pass a map is of."""

    group: GroupId
    bucket: str
    start: Offset
    end: Offset


class _Map:
    def __init__(self, keys: LatestKeys, used_ms: int) -> None:
        self.keys = keys
        self.used_ms = used_ms


class Rewriting:
    """See the module; one per broker. `threads` as for `LocalSource`."""

    def __init__(self, clock: Clock, threads: Executor | None, *, bytes_per_s: int) -> None:
        self.clock = clock
        self._threads = threads
        self._pace = Pace(bytes_per_s)
        self._maps: dict[_Key, _Map] = {}

    def source(
        self,
        store: ObjectStore,
        run: Sequence[SegmentEntry],
        *,
        dirty: Sequence[SegmentEntry] = (),
        cleaning: Cleaning | None = None,
        group: GroupId,
        bucket: str,
    ) -> "RunSource":
        """The records of a run. `dirty`: the objects that `cleaning` maps."""
        find_keys = None
        if cleaning is not None:
            key = _Key(group, bucket, cleaning.dirty_start, cleaning.dirty_end)
            find_keys = partial(self._keys, key, store, dirty, cleaning.map_bytes_max)
        return RunSource(self, store, run, cleaning=cleaning, find_keys=find_keys)

    def forget_old(self) -> None:
        """Let maps go that no pass has used for long."""
        before = self.clock.monotonic_ms() - KEPT_MS
        for key in [one for one, known in self._maps.items() if known.used_ms < before]:
            del self._maps[key]

    async def work(self, step: Callable[[], None], size_bytes: int) -> None:
        """Do a piece of work on a thread, then pause."""
        started_ms = self.clock.monotonic_ms()
        await asyncio.get_running_loop().run_in_executor(self._threads, step)
        spent_ms = self.clock.monotonic_ms() - started_ms
        await asyncio.sleep(PAUSE_FACTOR * spent_ms / 1000)
        await self._pace.take(size_bytes)

    async def _keys(
        self,
        key: _Key,
        store: ObjectStore,
        dirty: Sequence[SegmentEntry],
        bytes_max: int,
        moved: Moved,
    ) -> LatestKeys:
        known = self._maps.get(key)
        if known is not None:
            known.used_ms = self.clock.monotonic_ms()
            return known.keys
        keys = LatestKeys(key.start, bytes_max=bytes_max)
        for entry in dirty:
            batches = ObjectBatches(store, entry, await read_trailer(store, entry))
            while not keys.is_full and (data := await batches.next()):
                for piece in _pieces_of(data):
                    await self.work(partial(_add_keys, keys, piece, key.end), len(piece))
                    moved(len(piece))
        self._keep(key, keys)
        return keys

    def _keep(self, key: _Key, keys: LatestKeys) -> None:
        known = _Map(keys, self.clock.monotonic_ms())
        for one in (key, key._replace(end=keys.end_offset)):  # The leader learns how far it goes.
            self._maps[one] = known
        while len({id(one) for one in self._maps.values()}) > KEY_MAPS_MAX:
            oldest = min(self._maps.values(), key=lambda one: one.used_ms)
            self._maps = {at: one for at, one in self._maps.items() if one is not oldest}


class RunSource:
    """A `Source` of one object that takes the place of a run; see the module. `mapped_end`: how far
    the map of the pass goes, once it is read."""

    def __init__(
        self,
        rewriting: Rewriting,
        store: ObjectStore,
        run: Sequence[SegmentEntry],
        *,
        cleaning: Cleaning | None,
        find_keys: Callable[[Moved], Awaitable[LatestKeys]] | None,
    ) -> None:
        self._rewriting = rewriting
        self._store = store
        self._run = run
        self._cleaning = cleaning
        self._find_keys = find_keys
        self.size_bytes = sum(one.data_bytes for one in run)
        self.mapped_end = Offset(0)
        self.reading = ""
        """The name of the object that is read now."""

    async def read_into(self, writer: SegmentWriter, moved: Moved) -> None:
        """See `Source`; UnchangedError if the only object would stay as it is."""
        out: _Cleaned | None = None
        if self._find_keys is not None and self._cleaning is not None:
            keys = await self._find_keys(moved)
            self.mapped_end = keys.end_offset
            out = _Cleaned(writer, keys, self._cleaning, self._rewriting.clock.wall_ms())
        for entry in self._run:
            self.reading = entry.name
            trailer = await read_trailer(self._store, entry)
            writer.carry(trailer)
            batches = ObjectBatches(self._store, entry, trailer)
            while data := await batches.next():
                for piece in _pieces_of(data):
                    step = partial(writer.add if out is None else out.add, piece)
                    await self._rewriting.work(step, len(piece))
                    moved(len(piece))
        if out is not None:
            out.finish()
            if len(self._run) == 1 and not out.has_changed:
                raise UnchangedError(f"{self._run[0].name} has no record that may go")


class _Cleaned(CleanedBatches):
    """Cleans batches on their way into a writer."""

    def __init__(
        self, writer: SegmentWriter, keys: LatestKeys, cleaning: Cleaning, now_ms: int
    ) -> None:
        super().__init__()
        self._writer = writer
        self._buffers: list[Buffer] = []
        self._buffered_bytes = 0
        self._cleaner = BatchCleaner(
            keys,
            now_ms=now_ms,
            delete_retention_ms=cleaning.delete_retention_ms,
            outlived_offset=cleaning.outlived_offset,
            may_be_repeated=_is_in_no_trailer,
        )

    def add(self, data: memoryview) -> None:
        """Clean whole batches. Raises UnfitBatchError."""
        for header, batch in _batches(data):
            self._cleaner.clean(self, header, batch)

    def finish(self) -> None:
        """See `CleanedBatches`."""
        super().finish()
        self._flush()

    def _put(self, batch: Buffer) -> None:
        self._buffers.append(batch)
        self._buffered_bytes += len(batch)
        if self._buffered_bytes >= PIECE_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._buffers:
            self._writer.add(b"".join(self._buffers))
            self._buffers, self._buffered_bytes = [], 0


def _is_in_no_trailer(_: BatchHeader) -> bool:
    """Trailers have the producers: no empty batch has to stay for them."""
    return False


def _add_keys(keys: LatestKeys, data: memoryview, end: Offset) -> None:
    for header, batch in _batches(data):
        if keys.is_full or header.base_offset >= end:
            return
        keys.add(header, batch)


def _batches(data: memoryview) -> Iterator[tuple[BatchHeader, bytes]]:
    """Each batch with its bytes; the header's position is 0, in those bytes. Raises
    UnfitBatchError for a damaged one: cleaning would give it a right checksum."""
    for header in iterate_headers(data):
        if not crc_matches(data, header):
            raise UnfitBatchError(f"the batch at offset {header.base_offset} is damaged")
        batch = bytes(data[header.position : header.position + header.size])
        header.position = 0
        yield header, batch


def _pieces_of(data: bytes) -> list[memoryview]:
    """Whole batches, about `PIECE_BYTES` at a time."""
    view = memoryview(data)
    found = []
    start = end = 0
    for header in iterate_headers(view):
        end = header.position + header.size
        if end - start >= PIECE_BYTES:
            found.append(view[start:end])
            start = end
    if end > start:
        found.append(view[start:end])
    return found
