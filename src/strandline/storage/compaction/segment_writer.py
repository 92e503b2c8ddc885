"""Writes the file of a segment that will replace others.

Why:    compaction and repair build a segment from batches of old ones while the log reads those.
How:    collects batches into large writes and notes each batch in the segment.
Owns:   nothing; the file and the segment are handed in.
Source: design section 4."""

from strandline.base.disk import Buffer, File
from strandline.records.batch import read_header
from strandline.records.batch_cleaner import CleanedBatches
from strandline.storage.log.segment import Segment

_WRITE_BYTES = 1 << 20


class SegmentWriter(CleanedBatches):
    """Writes cleaned batches one after the other, and joins neighbouring fillers."""

    def __init__(self, target: Segment, file: File) -> None:
        super().__init__()
        self._target = target
        self._file = file
        self._buffers: list[Buffer] = []
        self._buffered_bytes = 0

    def finish(self) -> None:
        """Write what is left."""
        super().finish()
        self._flush_buffers()

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
