"""Keeps the last value of each key in the closed segments of a log.

Why:    a log of states (offsets, groups, tables) would grow for ever, and a reader would read all.
How:    slices of bounded work, so that the event loop goes on:
            1. map      {key: offset of its last record} over the records since the last pass
            2. rewrite  the neighbours that fit into one segment -> {first stem}.cleaned
            3. flush, remove the summaries, rename over the first segment's file, remove the others
        The rename decides: a crash before it leaves the old segments; after it, the new segment
        covers the other old ones and recovery removes them.
        The same segments at the same time give the same bytes on every replica.
Owns:   the `.cleaned` file during a pass.
Source: design section 4; Kafka's log cleaner."""

from collections.abc import Callable, Generator, Iterator, Sequence

from strandline.base.disk import Disk
from strandline.base.errors import StorageError
from strandline.model.ids import Offset
from strandline.records.batch import BatchHeader
from strandline.records.batch_cleaner import BatchCleaner
from strandline.records.cleaning import OFFSETS_MAX
from strandline.records.latest_keys import LatestKeys
from strandline.storage.compaction.segment_work import SegmentWork, read_verified
from strandline.storage.compaction.segment_writer import SegmentWriter
from strandline.storage.config import LogConfig
from strandline.storage.layout import CLEANED, LOG
from strandline.storage.log.segment import Segment
from strandline.storage.producers.producers import ProducerStates


class Compaction(SegmentWork):
    """One pass over closed, durable segments. Below `outlived_offset` tombstones may go."""

    def __init__(
        self,
        disk: Disk,
        segments: Sequence[Segment],
        *,
        dirty_offset: Offset,
        producers: ProducerStates,
        config: LogConfig,
        now_ms: int,
        outlived_offset: Offset,
        new_segment: Callable[[Segment], Segment],
    ) -> None:
        super().__init__(disk, segments)
        self._producers = producers
        self._config = config
        self._new_segment = new_segment
        self._dirty_offset = dirty_offset
        self._keys = LatestKeys(dirty_offset, bytes_max=config.compaction_map_bytes)
        self._cleaner = BatchCleaner(
            self._keys,
            now_ms=now_ms,
            delete_retention_ms=config.delete_retention_ms,
            outlived_offset=outlived_offset,
            may_be_repeated=self._may_be_repeated,
        )
        self.end_offset = dirty_offset
        """Below here the log will be clean; known when the map is built."""

    # ---- the pass ----

    def _run(self) -> Generator[bool, None, None]:
        yield from self._build_map()
        for row in self._rows():
            yield from self._clean_row(row)

    def _build_map(self) -> Iterator[bool]:
        for segment in self._segments:
            if segment.end_offset <= self._dirty_offset:
                continue
            for header, batch in _batches(segment):
                effort = self._keys.add(header, batch)
                self.end_offset = self._keys.end_offset
                if self._keys.is_full:
                    return
                if self._spend(effort):
                    yield True

    def _rows(self) -> Iterator[list[Segment]]:
        """Neighbours that fit into one segment."""
        row: list[Segment] = []
        size = 0
        for segment in self._segments:
            if segment.name.base_offset >= self.end_offset:
                break
            span = segment.end_offset - row[0].name.base_offset if row else 0
            if row and (
                size + segment.size_bytes > self._config.segment_bytes or span > OFFSETS_MAX
            ):
                yield row
                row, size = [], 0
            row.append(segment)
            size += segment.size_bytes
        if row:
            yield row

    def _clean_row(self, row: list[Segment]) -> Iterator[bool]:
        target = self._new_segment(row[0])
        file = self._open(target)
        writer = SegmentWriter(target, file)
        for segment in row:
            for header, batch in _batches(segment):
                if self._spend(self._cleaner.clean(writer, header, batch)):
                    yield True
        writer.finish()
        if len(row) == 1 and not writer.has_changed:
            self._disk.remove(target.path(CLEANED))
            return
        yield from self._finish(target, file, row)

    def _may_be_repeated(self, header: BatchHeader) -> bool:
        """Whether the producer may still send this batch again. A replica that copies the compacted
        log rebuilds its producers from the headers there, so the header must stay."""
        entry = self._producers.get(header.producer_id)
        return entry is not None and any(
            one.base_offset == header.base_offset for one in entry.window
        )


def compactable_segments(
    segments: Sequence[Segment], config: LogConfig, *, now_ms: int, limit_offset: Offset
) -> list[Segment]:
    """The first segments of a log as far as they may be compacted: closed, durable, old enough."""
    result: list[Segment] = []
    if not config.compacted:
        return result
    for segment in segments[:-1]:
        is_young = config.min_compaction_lag_ms > 0 and (
            _newest_ms(segment) > now_ms - config.min_compaction_lag_ms
        )
        if segment.end_offset > limit_offset or segment.is_dirty or is_young:
            break
        result.append(segment)
    return result


def _newest_ms(segment: Segment) -> int:
    """When the newest record was written; without timestamps, the last change of the file. Raises
    OSError."""
    return segment.max_timestamp if segment.max_timestamp >= 0 else segment.modified_ms()


def has_enough_dirt(
    segments: Sequence[Segment], dirty: Sequence[Segment], config: LogConfig
) -> bool:
    """Whether enough of these segments is dirty: new since the last pass."""
    dirty_bytes = sum(segment.size_bytes for segment in dirty)
    total_bytes = sum(segment.size_bytes for segment in segments)
    return dirty_bytes > 0 and dirty_bytes >= total_bytes * config.min_cleanable_dirty_ratio


def _batches(segment: Segment) -> Iterator[tuple[BatchHeader, bytes]]:
    """Each batch with its bytes; the header's position is 0, in those bytes.

    Raises StorageError for a damaged one: a rewrite would give it a right checksum."""
    offset = segment.name.base_offset
    for header in segment.headers(0, segment.size_bytes):
        segment.verify(header.position, header.position + header.size)
        batch = read_verified(segment, header)
        if header.base_offset != offset:
            raise StorageError(
                segment.path(LOG),
                header.position,
                expected=f"the batch of offset {offset}",
                found=f"one of offset {header.base_offset}",
            )
        offset = header.next_offset
        header.position = 0
        yield header, batch
