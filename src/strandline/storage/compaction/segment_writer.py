"""Writes the file of a segment that will replace others.

Why:    compaction and repair build a segment from batches of old ones while the log reads those.
How:    collects batches into large writes and notes each batch in the segment.
Owns:   nothing; the file and the segment are handed in.
Source: design section 4."""

from strandline.base.disk import Buffer, File
from strandline.model.ids import Offset
from strandline.records.batch import BatchHeader, read_header
from strandline.records.cleaning import OFFSETS_MAX, filler
from strandline.storage.log.segment import Segment

_WRITE_BYTES = 1 << 20


class SegmentWriter:
    """Writes cleaned batches one after the other, and joins neighbouring fillers."""

    def __init__(self, target: Segment, file: File) -> None:
        self._target = target
        self._file = file
        self._buffers: list[Buffer] = []
        self._buffered_bytes = 0
        self._gap: BatchHeader | None = None
        """The first of the batches that were skipped since the last one written."""
        self._gap_end = Offset(0)
        self._gap_count = 0
        self.has_changed = False

    def write(self, header: BatchHeader, batch: Buffer) -> None:
        """Keep a batch."""
        self._close_gap()
        self._put(batch)

    def skip(self, header: BatchHeader) -> None:
        """Let an empty batch stand for this one."""
        gap = self._gap
        if gap is not None and (
            gap.partition_leader_epoch != header.partition_leader_epoch
            or header.next_offset - gap.base_offset > OFFSETS_MAX
        ):
            self._close_gap()
        if self._gap is None:
            self._gap = header
            self._gap_count = 0
        self._gap_end = header.next_offset
        self._gap_count += 1

    def finish(self) -> None:
        """Write what is left."""
        self._close_gap()
        self._flush_buffers()

    def _close_gap(self) -> None:
        gap = self._gap
        if gap is not None:
            self._gap = None
            self.has_changed |= self._gap_count > 1
            self._put(filler(gap.base_offset, self._gap_end, gap.partition_leader_epoch))

    def _put(self, batch: Buffer) -> None:
        header = read_header(batch)
        assert header is not None
        self._buffers.append(batch)
        self._buffered_bytes += len(batch)
        self._target.note(header)
        if self._buffered_bytes >= _WRITE_BYTES:
            self._flush_buffers()

    def _flush_buffers(self) -> None:
        if self._buffers:
            self._file.pwrite(self._buffers, self._target.size_bytes - self._buffered_bytes)
            self._buffers = []
            self._buffered_bytes = 0
