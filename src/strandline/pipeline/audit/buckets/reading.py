"""Reads one object out of its bucket, checks it, and digests ranges of it.

How:    trailer, checked by the CRC of the log's entry --> whole chunks, in ranges of up to 8 MiB,
        two in flight, each chunk checked by the trailer --> the batches, by a walk.
        A chunk that does not match is read once more: the network may have been at fault. If the
        trailer is wrong or lacking, a listing tells the object's size, and the batches speak for
        themselves.
Owns:   nothing; the stores of a process are in `client.buckets.stores`.
Source: decisions 0058 and 0065."""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import NamedTuple

from strandline.base.disk import Buffer
from strandline.base.errors import StrandlineError
from strandline.client.buckets.stores import BucketStores, stores_of
from strandline.model.ids import Offset
from strandline.pipeline.audit.buckets.objects import Fault, ObjectResult, ObjectTask
from strandline.pipeline.audit.buckets.walk import ObjectWalk, Sums
from strandline.pipeline.audit.results import FindingKind
from strandline.pipeline.audit.tasks import SHARES_MAX, Bounds, Digest
from strandline.storage.digests.contents import RangeSums
from strandline.storage.digests.latest import KeyShare, LatestTable
from strandline.storage.digests.ranges import DIGEST_BYTES, OffsetRange, RangeDigest
from strandline.tiered.objects.store import ObjectAbsentError, ObjectInfo, StoreError
from strandline.tiered.segments.trailer import CHUNK_BYTES, Trailer, TrailerError

RANGE_BYTES_MAX = 8 << 20
RANGES_INFLIGHT = 2
ATTEMPTS_MAX = 3
"""A request that fails otherwise than by an answer of absence is sent so often."""
PAUSE_S = 0.2
KEYS_MAX = 500_000
"""Keys of one share, of about 250 bytes each."""


class _Judged(NamedTuple):
    """What is known of an object before its data is read. `reason`: why it is not the object that
    the log names; empty if it may be. `data_bytes`: how much of the data is there."""

    trailer: Trailer | None
    data_bytes: int
    reason: str = ""


class _Span(NamedTuple):
    """Data [start, end) of an object. `first`: (position, offset) of the batch at its start."""

    start: int
    end: int
    first: tuple[int, int]


class ObjectLine:
    """The tasks for some objects of one bucket, one after the other."""

    def run(self, task: ObjectTask) -> ObjectResult:
        """Run one task. Never raises a StoreError: that is the result's `problem`."""
        result = ObjectResult(task)
        try:
            if task.kind.is_latest:
                _read_latest(task, result)
            else:
                _read_ranges(task, result)
        except ObjectAbsentError:
            result.faults = [_missing(task, "the bucket has no such object")]
        except StoreError as error:
            result.problem, result.is_silent = str(error), not self._is_listed(task)
        except StrandlineError as error:
            result.problem, result.is_silent = str(error), True
        return result

    def _is_listed(self, task: ObjectTask) -> bool:
        """Whether the bucket answers at all."""
        stores = stores_of(task.options, timeout_ms=task.timeout_ms)
        try:
            return stores.find(task.bucket, task.entry.name).result() is not None
        except StoreError:
            return False

    def skip(self, task: ObjectTask, silent: ObjectResult) -> ObjectResult:
        """The result of a task that was not tried, because the bucket does not answer."""
        return ObjectResult(task, problem=silent.problem, is_silent=True)

    def close(self) -> None:
        """Nothing is held."""


class _Reading:
    """One task."""

    def __init__(self, task: ObjectTask, result: ObjectResult, sums: Sums) -> None:
        self._task = task
        self._result = result
        self._sums = sums
        self._stores: BucketStores = stores_of(task.options, timeout_ms=task.timeout_ms)

    def run(self) -> None:
        """Fill the result in. Raises StoreError."""
        task, result = self._task, self._result
        judged = self._judge()
        span = self._span(judged)
        walk = ObjectWalk(
            task.entry,
            self._sums,
            trailer=judged.trailer,
            first=span.first,
            end=span.end,
        )
        for start, data in self._pieces(span):
            wrong = _wrong_chunks(judged.trailer, start, data)
            if wrong:
                data = self._get(start, start + len(data))
                wrong = _wrong_chunks(judged.trailer, start, data)
            walk.add(data, wrong=wrong)
        walk.finish()
        result.faults = walk.faults
        if judged.reason:
            self._note_object(judged, walk.offset)

    def _note_object(self, judged: _Judged, reached: int) -> None:
        """The object is not the one that the log names: say so, once."""
        faults, entry = self._result.faults, self._task.entry
        if faults:
            faults[0] = replace(faults[0], reason=f"{faults[0].reason}; {judged.reason}")
        elif reached < entry.end_offset:
            faults.append(Fault(FindingKind.MISSING, reached, entry.end_offset, judged.reason))
        else:
            where = (entry.base_offset, entry.end_offset)
            faults.append(Fault(FindingKind.DAMAGED, *where, judged.reason, is_placed=False))

    # ---- the trailer ---------------------------------------------------------------------------

    def _judge(self) -> _Judged:
        """Read the trailer, or find out why it cannot be trusted. Raises StoreError."""
        entry = self._task.entry
        start, end = entry.data_bytes, entry.size_bytes
        reason = ""
        for _ in range(2):
            try:
                data = self._get(start, end)
                return _Judged(Trailer.parse(data, crc=entry.trailer_crc), entry.data_bytes)
            except TrailerError as error:
                reason = str(error)
            except ObjectAbsentError:
                raise
            except StoreError as error:
                failure = error
        info = self._find()
        if info is None:
            raise ObjectAbsentError(f"{entry.name} is not listed")
        if info.size_bytes != entry.size_bytes:
            reason = f"it has {info.size_bytes} bytes, and the log says {entry.size_bytes}"
            return _Judged(None, min(info.size_bytes, entry.data_bytes), reason)
        if not reason:
            raise failure
        return _Judged(None, entry.data_bytes, reason)

    # ---- the data ------------------------------------------------------------------------------

    def _span(self, judged: _Judged) -> _Span:
        """What has to be read."""
        task, trailer = self._task, judged.trailer
        entry = task.entry
        if task.is_whole or trailer is None or not task.ranges:
            return _Span(0, judged.data_bytes, (0, entry.base_offset))
        start = trailer.position_of(Offset(max(task.ranges[0][0], entry.base_offset)))
        end = trailer.end_position_of(Offset(min(task.ranges[-1][1], entry.end_offset)))
        offset: int = entry.base_offset
        if start:
            offset += trailer.offsets[trailer.positions.index(start)]
        return _Span(start, max(start, end), (start, offset))

    def _pieces(self, span: _Span) -> Iterator[tuple[int, Buffer]]:
        """(position, data) of the span, in order, cut at chunks. Raises StoreError."""
        low = span.start - span.start % CHUNK_BYTES
        starts = iter(range(low, span.end, RANGE_BYTES_MAX))
        inflight: deque[tuple[Bounds, Future[Buffer]]] = deque()
        try:
            while True:
                while len(inflight) < RANGES_INFLIGHT and (at := next(starts, None)) is not None:
                    bounds = (max(at, span.start), min(at + RANGE_BYTES_MAX, span.end))
                    inflight.append((bounds, self._ask(*bounds)))
                if not inflight:
                    return
                (start, end), coming = inflight.popleft()
                data = self._settled(start, end, coming)
                self._result.read_bytes += len(data)
                yield start, data
        finally:
            for _, coming in inflight:
                coming.cancel()

    # ---- requests --------------------------------------------------------------------------------

    def _ask(self, start: int, end: int) -> "Future[Buffer]":
        return self._stores.get_range(self._task.bucket, self._task.entry.name, start, end)

    def _get(self, start: int, end: int) -> Buffer:
        return self._settled(start, end, self._ask(start, end))

    def _settled(self, start: int, end: int, coming: "Future[Buffer]") -> Buffer:
        """The bytes, if need be by another request. Raises ObjectAbsentError, StoreError."""
        attempt = 1
        while True:
            try:
                return coming.result()
            except ObjectAbsentError:
                raise
            except StoreError:
                if attempt == ATTEMPTS_MAX:
                    raise
            time.sleep(PAUSE_S * attempt)
            attempt += 1
            coming = self._ask(start, end)

    def _find(self) -> ObjectInfo | None:
        return self._stores.find(self._task.bucket, self._task.entry.name).result()


def _read_ranges(task: ObjectTask, result: ObjectResult) -> None:
    """Digest ranges of one object; those with a fault have no digest. Raises StoreError."""
    sums = RangeSums(_ranges_of(task), task.kind)
    _Reading(task, result, sums).run()
    result.digests = _digests(task, sums.done(len(task.ranges)))
    for one in result.faults:
        if one.is_placed:
            result.leave_out(one.offset, one.end_offset)


def _read_latest(task: ObjectTask, result: ObjectResult) -> None:
    """Digest the last record of each key of all objects, share after share of the keys; with more
    shares if they are too large. Raises StoreError."""
    count = 1
    while count <= SHARES_MAX:
        sums: list[RangeDigest] = []
        for share in range(count):
            table = LatestTable(_ranges_of(task), KeyShare(share, count), has_markers=False)
            for entry in (task.entry, *task.rest):
                _Reading(replace(task, entry=entry), result, table).run()
                if result.faults:
                    return
                if table.key_count > KEYS_MAX:
                    break
            if table.key_count > KEYS_MAX:
                break
            sums = added(sums, table.digests())
        else:
            result.digests = _digests(task, sums)
            return
        count *= 4
    result.problem = "it has too many keys to compare"


def added(sums: Sequence[RangeDigest], more: Sequence[RangeDigest]) -> list[RangeDigest]:
    """The sums of shares, range by range."""
    if not sums:
        return list(more)
    return [
        replace(
            one,
            records=one.records + other.records,
            digest=(
                (int.from_bytes(one.digest, "big") + int.from_bytes(other.digest, "big"))
                % (1 << (8 * DIGEST_BYTES))
            ).to_bytes(DIGEST_BYTES, "big"),
        )
        for one, other in zip(sums, more, strict=True)
    ]


def _ranges_of(task: ObjectTask) -> list[OffsetRange]:
    return [OffsetRange(Offset(start), Offset(end)) for start, end in task.ranges]


def _digests(task: ObjectTask, found: Sequence[RangeDigest]) -> dict[Bounds, Digest]:
    return {
        bounds: Digest(
            one.records,
            one.batches,
            one.markers,
            one.size_bytes,
            one.first_offset,
            one.last_offset,
            one.digest,
        )
        for bounds, one in zip(task.ranges, found, strict=True)
    }


def _wrong_chunks(trailer: Trailer | None, start: int, data: Buffer) -> list[Bounds]:
    """The whole chunks in a piece of an object whose checksums are wrong."""
    if trailer is None:
        return []
    view, wrong = memoryview(data), []
    end = start + len(view)
    for chunk in range(-(-start // trailer.chunk_bytes), trailer.chunk_count):
        low, high = trailer.chunk_range(chunk)
        if high > end:
            break
        if not trailer.chunk_matches(chunk, view[low - start : high - start]):
            wrong.append((low, high))
    return wrong


def _missing(task: ObjectTask, reason: str) -> Fault:
    entry = task.entry
    return Fault(FindingKind.MISSING, entry.base_offset, entry.end_offset, reason)
