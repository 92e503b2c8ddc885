"""Fetches the record batches of one split out of buckets, two ranges ahead.

Why:    old records need no broker: the plan names the objects, and each is checked by itself.
How:    trailer, checked by the CRC of the log's entry --> whole chunks, in ranges of up to 8 MiB,
        each chunk checked by the trailer --> whole batches.
        The nearest bucket is tried first, then the others, from the next offset on. An object that
        is gone or damaged takes its bucket out of the split; other errors may pass. Without a
        usable bucket it gives up if a broker can go on, and otherwise tries again until `stall_ms`
        pass without a record.
Owns:   the next offset, and the ranges in flight.
Source: decision 0065; `tiered.segments.trailer`."""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from strandline.base.disk import Buffer
from strandline.base.errors import StrandlineError
from strandline.client.brokers import PAUSE_FIRST_MS, PAUSE_MAX_MS
from strandline.client.buckets.stores import GetRange
from strandline.model.ids import Offset
from strandline.spark.reading.bounds import name_of
from strandline.spark.reading.fetching import Fetched, last_whole
from strandline.spark.reading.splits import Split
from strandline.tiered.objects.store import ObjectAbsentError, StoreError
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.trailer import Trailer, TrailerError

RANGE_BYTES_MAX = 8 << 20
"""Of one request for records."""
RANGES_INFLIGHT = 2


class BucketsFailedError(StrandlineError):
    """No bucket gives the next records. Pickles as its message alone, as Spark needs it."""


class _DamagedObjectError(Exception):
    """The bytes of an object are not those that the log says."""


def monotonic_ms() -> int:
    """The time that intervals are measured by."""
    return time.monotonic_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to try while no bucket answers; 0 ms: once. The clock and the pause, for tests."""

    stall_ms: int
    monotonic_ms: Callable[[], int] = monotonic_ms
    sleep_ms: Callable[[int], None] = lambda ms: time.sleep(ms / 1000)


@dataclass(frozen=True, slots=True)
class _Range:
    """Bytes [start, end) of an object's data, in the chunks from `first_chunk` on."""

    entry: SegmentEntry
    trailer: Trailer
    first_chunk: int
    start: int
    end: int
    is_last: bool
    """Whether no more of this object is read."""
    coming: "Future[Buffer]"


class BucketFetcher:
    """See the module. `buckets`: the nearest first. `position`: the first offset that was not
    handed over."""

    def __init__(
        self,
        split: Split,
        buckets: Sequence[str],
        get_range: GetRange,
        *,
        patience: Patience,
        read_committed: bool,
    ) -> None:
        self._split = split
        self._left = [one for one in buckets if one in split.objects]
        self._get_range = get_range
        self._patience = patience
        self._read_committed = read_committed
        self.position = split.start
        self._reason = "no bucket has them"

    def __iter__(self) -> Iterator[Fetched]:
        """The batches of the split, in order; may reach beyond its end. Raises
        BucketsFailedError."""
        pause_ms, progress_ms, known = PAUSE_FIRST_MS, self._patience.monotonic_ms(), self.position
        while self.position < self._split.end:
            for bucket in tuple(self._left):
                try:
                    yield from self._read(bucket)
                    break
                except (_DamagedObjectError, TrailerError, ObjectAbsentError) as error:
                    self._left.remove(bucket)
                    self._reason = f"bucket {bucket}: {error}"
                except StoreError as error:
                    self._reason = f"bucket {bucket}: {error}"
            else:
                now_ms = self._patience.monotonic_ms()
                if self.position > known:
                    pause_ms, progress_ms, known = PAUSE_FIRST_MS, now_ms, self.position
                if not self._left or now_ms - progress_ms >= self._patience.stall_ms:
                    raise BucketsFailedError(self._failure())
                self._patience.sleep_ms(pause_ms)
                pause_ms = min(2 * pause_ms, PAUSE_MAX_MS)

    @property
    def is_unanswered(self) -> bool:
        """Whether a bucket may still have the rest, and does not answer."""
        return bool(self._left)

    def _failure(self) -> str:
        place = name_of((self._split.topic, self._split.partition))
        return (
            f"partition {place}: no bucket gives offsets {self.position} to {self._split.end}: "
            f"{self._reason}; run the query again if they were moved or deleted meanwhile, or "
            "read with readFrom=auto"
        )

    # ---- one bucket ------------------------------------------------------------------------------

    def _read(self, bucket: str) -> Iterator[Fetched]:
        """From the next offset to the end of the split. Raises StoreError, TrailerError,
        _DamagedObjectError."""
        ahead = self._ranges(bucket)
        inflight = deque[_Range]()
        tail = b""
        try:
            while True:
                while len(inflight) < RANGES_INFLIGHT and (more := next(ahead, None)) is not None:
                    inflight.append(more)
                if not inflight:
                    return
                one = inflight.popleft()
                tail = yield from self._hand_over(one, tail)
        finally:
            for one in inflight:
                one.coming.cancel()

    def _hand_over(self, one: _Range, tail: bytes) -> Generator[Fetched, None, bytes]:
        """The whole batches of a range; returns the bytes behind them."""
        data = self._checked(one)
        if tail:
            data = memoryview(b"".join((tail, data)))
        end, next_offset = last_whole(data)
        if next_offset is not None and next_offset > self.position:
            fetched = Fetched(
                data[:end], self.position, next_offset, self._aborted(one.trailer, next_offset)
            )
            self.position = next_offset
            yield fetched
        rest = bytes(data[end:])
        if not one.is_last:
            return rest
        if rest:
            raise _DamagedObjectError(f"{one.entry.name}: its last batch is cut")
        # Compaction may have left no record at the end.
        self.position = max(self.position, min(one.entry.end_offset, self._split.end))
        return b""

    def _checked(self, one: _Range) -> memoryview:
        data, trailer = memoryview(one.coming.result()), one.trailer
        first = one.first_chunk * trailer.chunk_bytes
        for at in range(0, len(data), trailer.chunk_bytes):
            chunk = one.first_chunk + at // trailer.chunk_bytes
            if not trailer.chunk_matches(chunk, data[at : at + trailer.chunk_bytes]):
                raise _DamagedObjectError(
                    f"{one.entry.name}: the checksum of its bytes from {first + at} on is wrong"
                )
        return data[one.start - first : one.end - first]

    def _aborted(self, trailer: Trailer, next_offset: int) -> list[tuple[int, int]]:
        if not self._read_committed:
            return []
        return [
            (one.producer_id, one.first_offset)
            for one in trailer.aborted
            if one.first_offset < next_offset and one.last_offset >= self.position
        ]

    def _ranges(self, bucket: str) -> Iterator[_Range]:
        """What is to be read, each requested when it is taken. The trailer of the next object is
        requested with the first range of the one before."""
        entries = [one for one in self._split.objects[bucket] if one.end_offset > self.position]
        trailers = (self._trailer_of(bucket, entry) for entry in entries)
        following = next(trailers, None)
        for entry in entries:
            assert following is not None
            trailer = Trailer.parse(following.result(), crc=entry.trailer_crc)
            following = next(trailers, None)
            yield from self._ranges_of(bucket, entry, trailer)

    def _trailer_of(self, bucket: str, entry: SegmentEntry) -> "Future[Buffer]":
        return self._get_range(bucket, entry.name, entry.data_bytes, entry.size_bytes)

    def _ranges_of(self, bucket: str, entry: SegmentEntry, trailer: Trailer) -> Iterator[_Range]:
        start = trailer.position_of(Offset(max(self.position, entry.base_offset)))
        end = trailer.end_position_of(Offset(self._split.end))
        chunk_bytes = trailer.chunk_bytes
        if start >= end:  # Compaction left no record of these offsets.
            empty = Future[Buffer]()
            empty.set_result(b"")
            yield _Range(entry, trailer, 0, 0, 0, is_last=True, coming=empty)
            return
        step = max(RANGE_BYTES_MAX // chunk_bytes, 1)
        first, stop = start // chunk_bytes, -(-end // chunk_bytes)
        for chunk in range(first, stop, step):
            last = min(chunk + step, stop)
            low, high = chunk * chunk_bytes, min(last * chunk_bytes, trailer.data_bytes)
            yield _Range(
                entry,
                trailer,
                chunk,
                max(low, start),
                min(high, end),
                is_last=last == stop,
                coming=self._get_range(bucket, entry.name, low, high),
            )
