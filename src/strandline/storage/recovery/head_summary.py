"""Summarises the head of the active segment, so that the next opening scans only the rest.

Why:    a killed broker leaves an open segment in each of its logs; reading all of them from their
        bases takes as long as there is data.
How:    |----head: durable, summarised----|--scanned at the opening--| end
        Now and then a flush request also records what a scan would find so far. Once the flush is
        done, that is written to the files of a closed segment. A summary of fewer bytes than the
        segment has covers its head. The next one is due when the rest has grown by an eighth of the
        head, so the summaries stay a small share of the writes.
Owns:   how much of the active segment its summary covers.
Source: design section 4; `sealing` for the files."""

import contextlib
from typing import NamedTuple

from strandline.base.disk import Disk
from strandline.model.ids import Index
from strandline.storage.log.row import SegmentRow
from strandline.storage.log.sealing import SealFiles, describe, write_seal
from strandline.storage.log.segment import Segment
from strandline.storage.producers.producers import ProducerStates

REST_BYTES_MIN = 2 << 20
REST_SHARE = 8


class TakenHead(NamedTuple):
    """A head as it was when its flush was asked for."""

    segment: Segment
    files: SealFiles


class HeadSummary:
    """The summaries of the active segments of one log."""

    __slots__ = ("_disk", "_is_closed", "_row", "_segment", "_size_bytes")

    def __init__(self, disk: Disk, row: SegmentRow) -> None:
        self._disk = disk
        self._row = row
        self._segment = row.active
        self._size_bytes = 0
        self._is_closed = False

    def take(self, producers: ProducerStates) -> TakenHead | None:
        """Take down what the log is now, if that is due; `producers` are those at its end."""
        segment = self._row.active
        if segment is not self._segment or segment.size_bytes < self._size_bytes:
            self._segment = segment
            self._size_bytes = 0
        if segment.size_bytes - self._size_bytes < max(
            REST_BYTES_MIN, self._size_bytes // REST_SHARE
        ):
            return None
        self._size_bytes = segment.size_bytes
        return TakenHead(
            segment, describe(segment, self._row.history, producers=producers.checkpoint())
        )

    def write(self, head: TakenHead, flushed_index: Index) -> None:
        """The log is durable up to `flushed_index`: if that is all of the head, remember it."""
        covers = flushed_index >= head.files.summary.end_index - 1
        if covers and not self._is_closed and head.segment is self._row.active:
            with contextlib.suppress(OSError):  # Without it, more is scanned.
                write_seal(self._disk, head.segment, head.files)

    def close(self) -> None:
        """Write nothing more: flushes under way end later, maybe beside another `Log`."""
        self._is_closed = True
