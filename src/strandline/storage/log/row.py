"""The segments of one log, kept the same in memory and on the disk through crashes.

Why:    one change of the segments changes several file names. Each change orders its steps so that
        recovery can tell a crash between two of them from a loss.
How:    begin_next     create the new file, flush the directory, then use the file
        cut            flush a mark of the durable rest, remove later segments, remove the summary,
                       flush the directory, then cut and flush the file
        remove_first   write an intent file, then remove the files (see `name_changes`)
        reset          write an intent file, remove the files, then rename the intent file
        replace        flush a mark beside the active segment, remove the claims, rename over the
                       first segment, remove the others (`finish_replacements`)
Owns:   the segments, the active one among them, and their history.
Source: design section 4; "All File Systems Are Not Created Equal", OSDI'14, for the orders."""

import contextlib
from collections.abc import Sequence
from typing import NamedTuple

from strandline.base.clock import Clock
from strandline.base.disk import Disk, File
from strandline.base.errors import StorageError
from strandline.model.ids import Epoch, Index, Offset
from strandline.storage.compaction.segment_work import Cleaned, read_verified
from strandline.storage.layout import CLAIMS, CLEANED, FLUSHED, LOG, SUMMARY, SegmentName
from strandline.storage.log import reads
from strandline.storage.log.checksum_verification import Place, TrustPeriod, VerifiableSegment
from strandline.storage.log.history import History
from strandline.storage.log.name_changes import (
    declare,
    remove_before,
    remove_segment_files,
    reset,
)
from strandline.storage.log.sealing import (
    create_mark,
    flush_mark,
    lower_mark,
    seal_segment,
    write_flushed,
)
from strandline.storage.log.segment import Segment
from strandline.storage.recovery.recovery import RecoveredLog


class Cut(NamedTuple):
    """The new end of a log: the segment's number, the place in it, and what stays latest.

    `latest`: see `Segment.latest_before`."""

    number: int
    end: Place
    latest: tuple[int, Offset]


class SegmentRow:
    """The segments of one log in order; the last is the active one. Methods raise OSError."""

    __slots__ = (
        "_cache",
        "_disk",
        "_marked",
        "_old_marks",
        "_trust",
        "active",
        "directory",
        "history",
        "segments",
    )

    def __init__(
        self, disk: Disk, directory: str, found: RecoveredLog, *, clock: Clock, trust_ms: int
    ) -> None:
        """`trust_ms`: see `LogConfig`."""
        self._disk = disk
        self._cache = found.cache
        self.directory = directory
        self.history = found.history
        self.segments = found.segments
        self.active = found.segments[-1]
        self._trust = TrustPeriod(clock, trust_ms, self._epochs_of)
        for segment in self.segments:
            segment.trust_from_now(self._trust)
        self.active.open_index()
        self._old_marks = found.old_marks
        """Closed segments that may still have a mark beside them."""
        self._marked = (self.active.name, Index(-1))
        """(segment, index): the newest mark that this process has flushed. A mark found at the
        opening may be in the page cache only, because an earlier process failed to flush it."""

    def end_name(self) -> SegmentName:
        """The name of a segment that would begin at the log's end."""
        history = self.history
        return SegmentName(self.active.end_offset, history.marker_count, history.last_epoch)

    def new_segment(self, name: SegmentName, index_interval_bytes: int) -> Segment:
        """A segment object; creates no file."""
        segment = Segment(
            self._disk,
            self.directory,
            name,
            cache=self._cache,
            index_interval_bytes=index_interval_bytes,
        )
        segment.trust_from_now(self._trust)
        return segment

    def begin_next(self, index_interval_bytes: int) -> Segment:
        """Close the active segment and begin the next one; returns the closed one.

        After an OSError the row is as it was."""
        old = self.active
        segment = self.new_segment(self.end_name(), index_interval_bytes)
        old.trim()
        try:
            segment.create()
            create_mark(self._disk, self.directory, segment.name)
            self._disk.flush_directory(self.directory)
        except OSError:
            # The row does not use it, and a later segment may begin at the same index.
            segment.release()
            with contextlib.suppress(OSError):
                for suffix in (LOG, FLUSHED):
                    self._disk.remove(segment.path(suffix))
            raise
        self._old_marks.add(old.name)
        self._old_marks.discard(segment.name)
        self.segments.append(segment)
        self.active = segment
        assert segment.name.base_index == old.end_index, f"{segment.name} after {old.end_index}"
        return old

    @property
    def marked_index(self) -> Index:
        """The index in the newest flushed mark; -1 for none."""
        return self._marked[1]

    def find_cut(self, from_index: Index) -> Cut:
        """Where the log ends once the entries from `from_index` on, where a batch begins, are gone.
        Raises StorageError if damage hides that."""
        at = reads.segment_at_index(self.segments, from_index)
        segment = self.segments[at]
        position = self._place_of(segment, from_index)
        offset = self.history.offset_of(from_index)
        latest = segment.latest_before(position, offset)
        return Cut(at, Place(position, offset, from_index), latest)

    def cut(self, place: Cut, kept_index: Index) -> list[Segment]:
        """Remove everything from `place` on, durably. `kept_index`: the rest is durable up to it.
        The segment of `place` becomes the active one. Returns the removed segments."""
        segment = self.segments[place.number]
        position, offset, from_index = place.end
        removed = self.segments[place.number + 1 :]
        del self.segments[place.number + 1 :]
        self.active = segment
        self._lower_mark(kept_index)
        if removed:
            names = [gone.name for gone in removed]
            remove_segment_files(self._disk, self.directory, names)
        self._remove_claims([segment], (SUMMARY,))
        segment.open_index()
        segment.cut(position, end_offset=offset, end_index=from_index, latest=place.latest)
        segment.trim()
        self._disk.flush_now(segment.file)
        self.history.truncate(from_index)
        _release(removed)
        return removed

    def _place_of(self, segment: Segment, index: Index) -> int:
        """The position of the batch that begins at `index`: the end of the batch before it, because
        the batch itself may be damaged. Raises StorageError."""
        if index == segment.name.base_index:
            return 0
        before = Index(index - 1)
        marker = segment.marker_at(before)
        if marker is not None:
            return marker.position + marker.size
        offset = self.history.offset_of(before)
        header = segment.find_index(before, offset)
        end = header.position + header.size
        try:
            segment.verify_again(offset, end)
        except StorageError:
            # The damage may lie before that batch, and no replica may have the batches. No checksum
            # covers an offset, so the following batch must confirm it.
            read_verified(segment, header)
            following = next(segment.headers(end, min(end + 1, segment.size_bytes)), None)
            if (
                header.partition_leader_epoch != self.history.epoch_of(before)
                or following is None
                or following.base_offset != header.next_offset
            ):
                raise
        if header.next_offset != self.history.offset_of(index):
            raise segment.damaged(header.position, f"a batch that ends at {header.next_offset}")
        return end

    def declare(self, name: SegmentName, suffix: str) -> None:
        """Take the space to let the log begin at `name`; nothing else changes.

        `suffix`: START before `remove_first`, RESET before `reset`."""
        declare(self._disk, self.directory, name, suffix)

    def remove_first(self, count: int) -> list[Segment]:
        """Remove the first `count` segments; returns them."""
        removed = self.segments[:count]
        start = self.segments[count].name
        remove_before(self._disk, self.directory, start)
        assert 0 < count < len(self.segments), f"removing {count} of {len(self.segments)} segments"
        del self.segments[:count]
        self.history.advance(start, self.active.end_index)
        _release(removed)
        return removed

    def reset(self, name: SegmentName, index_interval_bytes: int) -> list[Segment]:
        """Replace all segments by one empty segment; returns the removed ones."""
        reset(self._disk, self.directory, name)
        removed = list(self.segments)
        self.active = self.new_segment(name, index_interval_bytes)
        self.segments[:] = [self.active]
        self.history = History(name)
        self._old_marks.clear()
        self._marked = (name, Index(-1))
        _release(removed)
        return removed

    def prepare(self, cleaned: Cleaned, flushed_index: Index) -> None:
        """Before `replace`: write a mark beside a segment that stays. `flushed_index`: the log is
        durable up to it. On a full disk nothing has changed."""
        end = Index(cleaned.replaced[-1].end_index - 1)
        self.ensure_marked(min(flushed_index, end), flushed_index)

    def replace(self, cleaned: Cleaned) -> None:
        """Put a compacted segment in the place of those it was made from."""
        old = list(cleaned.replaced)
        segment = cleaned.segment
        bounds = (old[0].name, old[-1].end_index, old[-1].end_offset)
        assert bounds == (segment.name, segment.end_index, segment.end_offset), f"not {bounds}"
        self._remove_claims(old, CLAIMS)
        self._disk.rename(segment.path(CLEANED), segment.path(LOG))
        self._disk.flush_directory(self.directory)
        if len(old) > 1:
            remove_segment_files(self._disk, self.directory, [gone.name for gone in old[1:]])
        at = self.segments.index(old[0])
        self.segments[at : at + len(old)] = [segment]
        _release(old)

    def seal(self, segment: Segment) -> None:
        """Write the files beside a durable closed segment; without them the next start scans it."""
        with contextlib.suppress(OSError, StorageError):
            seal_segment(self._disk, segment, self.history, keep_index=segment is not self.active)

    def write_mark(self, index: Index) -> tuple[File, set[SegmentName]]:
        """Write a mark beside the active segment: the log is durable up to `index`. Returns the
        file, to be flushed and closed, and the segments whose older marks may go afterwards."""
        file = write_flushed(self._disk, self.directory, self.active.name, index)
        return file, set(self._old_marks)

    def ensure_marked(self, index: Index, flushed_index: Index) -> None:
        """Ensure that a durable mark beside the active segment has at least `index`. If not, write
        one with `flushed_index`, because a mark above `index` may be under way. Blocks to flush; on
        a full disk nothing has changed."""
        name, marked_index = self._marked
        if index >= 0 and (name != self.active.name or marked_index < index):
            flush_mark(self._disk, self.directory, self.active.name, flushed_index)
            self._marked = (self.active.name, flushed_index)
            self._old_marks.discard(self.active.name)

    def _lower_mark(self, index: Index) -> None:
        name = self.active.name
        is_marked = lower_mark(self._disk, self.directory, name, index)
        self._marked = (name, index if is_marked else Index(-1))
        self._old_marks.discard(name)

    def on_mark_flushed(self, name: SegmentName, index: Index, old: set[SegmentName]) -> None:
        """The mark of `write_mark` is durable, with no cut meanwhile: remove the older marks."""
        if index >= self._marked[1]:
            self._marked = (name, index)
        with contextlib.suppress(OSError):
            for name in old:
                self._disk.remove(f"{self.directory}/{name.stem}{FLUSHED}")
            self._old_marks -= old

    def release(self) -> None:
        """Drop all files."""
        _release(self.segments)

    def _epochs_of(self, segment: VerifiableSegment) -> list[tuple[Epoch, Index]]:
        return self.history.epochs_between(segment.name.base_index, segment.end_index)

    def _remove_claims(self, segments: Sequence[Segment], suffixes: Sequence[str]) -> None:
        paths = [segment.path(suffix) for segment in segments for suffix in suffixes]
        present = [path for path in paths if self._disk.exists(path)]
        for path in present:
            self._disk.remove(path)
        if present:
            self._disk.flush_directory(self.directory)


def _release(segments: Sequence[Segment]) -> None:
    for segment in segments:
        segment.release()
