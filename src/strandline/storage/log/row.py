"""The row of segments of one log, in memory and on the disk, kept the same through crashes.

Why:    every change of the row is several changes of names; each is ordered so that a crash between
        any two of them leaves something that recovery can tell from a loss.
How:    begin_next     new file, directory flushed, then used
        cut            a mark of what stays flushed, later segments removed, the summary removed,
                       directory flushed, then the file cut and flushed
        let_go         an intent file, then the removals (see `name_changes`)
        begin_anew     an intent file, then the removals, then its rename (`reset`)
        replace        a mark beside the active segment flushed, claims removed, rename over the
                       first, the others removed (`finish_replacements`)
Owns:   the segments, the active one among them, and the history over them.
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
    """Where a log is to end: in which of its segments, and what the last batch before says."""

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
        """Closed segments that may have a mark beside them still."""
        self._marked = (self.active.name, Index(-1))
        """(beside which segment, what it says): the newest mark that this process has flushed. What
        was found may be in the page cache alone, even if a flush had covered it that failed."""

    def end_name(self) -> SegmentName:
        """What a segment would be called that began at the end."""
        history = self.history
        return SegmentName(self.active.end_offset, history.marker_count, history.last_epoch)

    def new_segment(self, name: SegmentName, index_interval_bytes: int) -> Segment:
        """A segment in memory only."""
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
            # Nobody knows it: it would be found beside one that begins at the same index later.
            segment.release()
            with contextlib.suppress(OSError):
                for suffix in (LOG, FLUSHED):
                    self._disk.remove(segment.path(suffix))
            raise
        self._old_marks.add(old.name)
        self._old_marks.discard(segment.name)
        self.segments.append(segment)
        self.active = segment
        return old

    @property
    def marked_index(self) -> Index:
        """Up to there it is noted durably what is durable; -1 for nothing."""
        return self._marked[1]

    def find_cut(self, from_index: Index) -> Cut:
        """Where the log ends without the entries at `from_index`, a beginning of a batch, and
        above. Raises StorageError where that cannot be found for damage."""
        at = reads.segment_at_index(self.segments, from_index)
        segment = self.segments[at]
        position = self._place_of(segment, from_index)
        offset = self.history.offset_of(from_index)
        latest = segment.latest_before(position, offset)
        return Cut(at, Place(position, offset, from_index), latest)

    def cut(self, place: Cut, kept_index: Index) -> list[Segment]:
        """Remove what is at `place` and above, durably. `kept_index`: up to there is durable what
        stays. The segment that holds it becomes the active one. Returns the segments that are
        gone."""
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
        """Where the batch that begins at `index` begins in its segment: behind the one before,
        for it may be damaged itself. Raises StorageError."""
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
            # What is damaged may lie before that batch, and be lost everywhere. No checksum covers
            # an offset: what follows has to say the same.
            read_verified(segment, header)
            following = next(segment.headers(end, min(end + 1, segment.size)), None)
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
        """Take what space is needed to let the log begin at `name`; nothing else changes.

        `suffix`: START before `remove_first`, RESET before `reset`."""
        declare(self._disk, self.directory, name, suffix)

    def remove_first(self, count: int) -> list[Segment]:
        """Remove the first `count` segments; returns them."""
        removed = self.segments[:count]
        start = self.segments[count].name
        remove_before(self._disk, self.directory, start)
        del self.segments[:count]
        self.history.advance(start, self.active.end_index)
        _release(removed)
        return removed

    def reset(self, name: SegmentName, index_interval_bytes: int) -> list[Segment]:
        """Replace everything by one empty segment; returns the segments that are gone."""
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
        """Before `replace`: have a mark that lies beside none of the segments that go.
        `flushed_index`: up to there the log is durable. Where there is no room, nothing has
        changed."""
        end = Index(cleaned.replaced[-1].end_index - 1)
        self.ensure_marked(min(flushed_index, end), flushed_index)

    def replace(self, cleaned: Cleaned) -> None:
        """Let a compacted segment take the place of those it was made from."""
        old = list(cleaned.replaced)
        segment = cleaned.segment
        self._remove_claims(old, CLAIMS)
        self._disk.rename(segment.path(CLEANED), segment.path(LOG))
        self._disk.flush_directory(self.directory)
        if len(old) > 1:
            remove_segment_files(self._disk, self.directory, [gone.name for gone in old[1:]])
        at = self.segments.index(old[0])
        self.segments[at : at + len(old)] = [segment]
        _release(old)

    def seal(self, segment: Segment) -> None:
        """Write the files beside a closed segment that is durable; without them it is scanned."""
        with contextlib.suppress(OSError, StorageError):
            seal_segment(self._disk, segment, self.history, keep_index=segment is not self.active)

    def write_mark(self, index: Index) -> tuple[File, set[SegmentName]]:
        """Write beside the active segment that the log is durable up to `index`; (the file, to be
        flushed and closed, whose marks say less and may go once it is)."""
        file = write_flushed(self._disk, self.directory, self.active.name, index)
        return file, set(self._old_marks)

    def ensure_marked(self, index: Index, flushed_index: Index) -> None:
        """See that a durable mark beside the active segment says as much as `index`. Where it does
        not, it says `flushed_index` then, for one may be under way that says more than `index`.
        Blocks to flush; where there is no room for it, nothing has changed."""
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
        """What `write_mark` wrote is durable, and nothing was cut meanwhile: let go of what says
        less."""
        if index >= self._marked[1]:
            self._marked = (name, index)
        with contextlib.suppress(OSError):
            for name in old:
                self._disk.remove(f"{self.directory}/{name.stem}{FLUSHED}")
            self._old_marks -= old

    def release(self) -> None:
        """Let go of all files."""
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
