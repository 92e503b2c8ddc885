"""Rewrites a closed segment with other batches in the place of damaged ones.

Why:    if one replica has compacted its log and another not yet, the peer's batches for a gap have
        another size than the gap.
How:    [kept][batches of a peer][kept] --> {stem}.cleaned --> flush --> the owner renames it over
        the segment, as after a compaction. Slices of bounded work; kept batches are verified.
Owns:   the `.cleaned` file while it is written.
Source: design section 4 (compacted logs match entry by entry)."""

from collections.abc import Callable, Generator, Iterator, Sequence

from strandline.base.disk import Disk
from strandline.records.batch import iterate_headers
from strandline.storage.compaction.segment_work import SegmentWork, read_verified
from strandline.storage.compaction.segment_writer import SegmentWriter
from strandline.storage.log.history import History
from strandline.storage.log.segment import Segment
from strandline.storage.recovery.scrubbing import Gap


class Rewrite(SegmentWork):
    """Rewrites a closed segment with other bytes in its gaps, in slices.

    `replacements`: (gap, fitting bytes), ascending, all gaps of the segment."""

    def __init__(
        self,
        disk: Disk,
        segment: Segment,
        replacements: Sequence[tuple[Gap, bytes]],
        *,
        history: History,
        new_segment: Callable[[Segment], Segment],
    ) -> None:
        super().__init__(disk, [segment])
        self._segment = segment
        self._history = history
        self._replacements = replacements
        self._target = new_segment(segment)

    def _run(self) -> Generator[bool, None, None]:
        file = self._open(self._target)
        writer = SegmentWriter(self._target, file)
        position = 0
        for gap, data in self._replacements:
            yield from self._keep(writer, position, gap.start.position)
            for header in iterate_headers(data):
                start = header.position
                writer.write(header, data[start : start + header.size])
            position = gap.end.position
        yield from self._keep(writer, position, self._segment.size_bytes)
        writer.finish()
        found, expected = self._target.end_index, self._segment.end_index
        if found != expected:
            raise self._segment.damaged(
                self._segment.size_bytes, f"an end at {found}, not {expected}"
            )
        yield from self._finish(self._target, file, [self._segment])

    def _keep(self, writer: SegmentWriter, start: int, end: int) -> Iterator[bool]:
        target = self._target
        for header in self._segment.headers(start, end):
            batch = read_verified(self._segment, header)
            # No checksum covers these fields, and the new segment is trusted for a while.
            if (
                header.base_offset != target.end_offset
                or header.partition_leader_epoch != self._history.epoch_of(target.end_index)
                or header.is_marker != self._history.is_marker(target.end_index)
            ):
                raise self._segment.damaged(header.position, f"offset {header.base_offset}")
            writer.write(header, batch)
            if self._spend(header.size):
                yield True
