"""Finds damage in a log and replaces it by batches of other replicas.

Why:    a committed entry is the same on every replica, so a peer can return a lost one, and the log
        need not be copied as a whole.
How:    scrub -> gaps -> the owner fetches batches -> `fitting` checks them: the same indexes and
        epochs, right checksums -> `fill` writes them over the gap, or `rewrite` rewrites the
        segment if they have another size. If no peer has all of a gap, the batches of its beginning
        are written over that part (`part`).
Owns:   the rewrite under way. It works on the log's segments as their owner asks.
Source: reliability reference 3; Protocol-Aware Recovery for Consensus-Based Storage, FAST'18."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from errno import EIO

from strandline.base.disk import Disk
from strandline.base.errors import ApiError, StorageError
from strandline.model.ids import Index
from strandline.records.batch import HEADER, BatchHeader, crc_of, iterate_headers
from strandline.records.cleaning import filler, is_filler
from strandline.storage.compaction.segment_work import Cleaned
from strandline.storage.log.checksum_verification import Place
from strandline.storage.log.flushing import Flushing
from strandline.storage.log.history import History
from strandline.storage.log.row import SegmentRow
from strandline.storage.log.segment import Segment
from strandline.storage.recovery.rewriting import Rewrite
from strandline.storage.recovery.scrubbing import Gap, Scrub, find_gap, find_gaps


class Mending:
    """See the module; one per log."""

    __slots__ = (
        "_abandon_compaction",
        "_disk",
        "_flushing",
        "_new_segment",
        "_on_mended",
        "_rewrite",
        "_roll",
        "_row",
    )

    def __init__(
        self,
        disk: Disk,
        row: SegmentRow,
        flushing: Flushing,
        *,
        new_segment: Callable[[Segment], Segment],
        abandon_compaction: Callable[[], None],
        on_mended: Callable[[Index], None],
        roll: Callable[[], None],
    ) -> None:
        self._disk = disk
        self._row = row
        self._flushing = flushing
        self._new_segment = new_segment
        self._abandon_compaction = abandon_compaction
        self._on_mended = on_mended
        self._roll = roll
        self._rewrite: Rewrite | None = None

    @property
    def is_rewriting(self) -> bool:
        """Whether a rewrite is under way: compaction would use the same file."""
        return self._rewrite is not None and not self._rewrite.is_over

    def scrub(self, from_index: Index) -> Scrub:
        """A pass over what lies on the disk, from the segment that holds `from_index` on."""
        return Scrub(self._row, max(from_index, self._row.history.start.base_index))

    def find_again(self, gap: Gap) -> Gap | None:
        """Find a gap again after the log may have changed; None if it is gone."""
        if gap.segment not in self._row.segments or gap.start.position >= gap.segment.size_bytes:
            return None
        return find_gap(gap.segment, self._row.history, gap.start.position)

    def find_each_again(self, gaps: Iterable[Gap]) -> list[Gap]:
        """Find the gaps of one segment again, ascending, each once. An early gap may have grown
        over a later one, and behind a repaired beginning there may be more damage."""
        found: list[Gap] = []
        for known in sorted(gaps, key=lambda gap: gap.start.position):
            if known.segment not in self._row.segments:
                continue
            start, end = known.start.position, known.end.position
            for gap in find_gaps(known.segment, self._row.history, start, end):
                if not (found and gap.start.position < found[-1].end.position):
                    found.append(gap)
        return found

    def fitting(self, gap: Gap, data: bytes) -> bytes:
        """A peer's batches in the form that fits into `gap`. Raises StorageError."""
        return fitting(gap, self._row.history, data)

    def fitting_start(self, gap: Gap, data: bytes) -> tuple[bytes, Place]:
        """The batches that fit from the beginning of the gap on, and the place behind them."""
        return fitting_start(gap, self._row.history, data)

    def part(self, gap: Gap, data: bytes, end: Place, *, is_same: bool) -> Gap | None:
        """The part of a gap that these batches, up to `end`, cover; None if that is unknown.

        `is_same`: no replica ever compacted the log, so they have the size of the lost batches.
        Otherwise the batch behind them must be the one that follows, or a known marker."""
        if end[1:] == gap.end[1:]:
            return gap
        end = end._replace(position=gap.start.position + len(data))
        if not data or end.position >= gap.end.position:
            return None
        if is_same:
            return replace(gap, end=end)
        return replace(gap, end=end) if self._stands_at(gap.segment, end) else None

    def _stands_at(self, segment: Segment, place: Place) -> bool:
        """Whether the header at a place is the one that belongs there."""
        try:
            header = next(segment.headers(place.position, place.position + 1))
        except (OSError, StorageError):
            return False
        history = self._row.history
        marker = segment.marker_at(place.raft_index)
        return (
            header.base_offset == place.offset
            and header.partition_leader_epoch == history.epoch_of(place.raft_index)
            and header.is_marker == (marker is not None)
            and (marker is None or marker.position == place.position)
        )

    def expect(self, from_index: Index) -> None:
        """Entries of another replica follow from `from_index` on: they are not compacted here."""
        self._abandon_compaction()
        self._on_mended(from_index)

    def fill(self, gap: Gap, data: bytes) -> None:
        """Write batches over a gap, of which `fits_in_place` holds. Durable with the next flush.

        Raises OSError, after which the log has failed."""
        gap_bytes = gap.end.position - gap.start.position
        assert len(data) == gap_bytes, f"{len(data)} bytes for a gap of {gap_bytes}"
        self._flushing.check()
        self._abandon_compaction()
        try:
            gap.segment.file.pwrite((data,), gap.start.position)
        except OSError as error:
            self._flushing.fail(error)
            raise
        self._flushing.mark_dirty(gap.segment)
        self._on_mended(gap.start.raft_index)
        gap.segment.rebuild_index()

    def rewrite(self, replacements: Sequence[tuple[Gap, bytes]]) -> Rewrite:
        """Begin to rewrite the segment of these gaps: step it, then `replace`. Raises OSError.

        `replacements`: (gap, fitting batches), ascending, all gaps of one segment, which is closed
        where it was the active one."""
        self._flushing.check()
        self._abandon_compaction()
        segment = replacements[0][0].segment
        if segment is self._row.active:
            self._roll()
        self._rewrite = Rewrite(
            self._disk,
            segment,
            replacements,
            history=self._row.history,
            new_segment=self._new_segment,
        )
        return self._rewrite

    def abandon(self) -> None:
        """Abandon the rewrite: the log is about to be cut, maybe there. Raises OSError."""
        if self._rewrite is not None:
            self._rewrite.abandon()
            self._rewrite = None

    def replace(self, cleaned: Cleaned) -> None:
        """Put a rewritten segment in its place. Raises OSError: if the log has changed meanwhile,
        it goes on as it is; otherwise it has failed."""
        self._rewrite = None
        self._flushing.check()
        if not all(segment in self._row.segments[:-1] for segment in cleaned.replaced):
            raise OSError(EIO, "the log has changed meanwhile")
        self._abandon_compaction()
        with self._flushing.failing(unless_full=True):
            self._row.prepare(cleaned, self._flushing.flushed_index)
        for segment in cleaned.replaced:
            self._flushing.mark_clean(segment)
        with self._flushing.failing():
            self._row.replace(cleaned)
        self._flushing.mark_durable(cleaned.segment)
        self._on_mended(cleaned.segment.name.base_index)


def fitting(gap: Gap, history: History, data: bytes) -> bytes:
    """The batches of `data` in the form that fits into `gap`: a filler is cut to end with the gap.
    Raises StorageError if they are not the gap's."""
    found, end = fitting_start(gap, history, data)
    if end[1:] != gap.end[1:]:
        raise StorageError(
            gap.path,
            gap.start.position,
            expected=f"batches of the indexes {gap.start.raft_index} to {gap.last_index}",
            found=f"a replacement that fits up to index {end.raft_index - 1}",
        )
    return found


def fitting_start(gap: Gap, history: History, data: bytes) -> tuple[bytes, Place]:
    """The batches that fit from the beginning of the gap on, and the place behind them."""
    parts: list[bytes] = []
    offset, index = gap.start.offset, gap.start.raft_index
    try:
        for header in iterate_headers(data):
            if index > gap.last_index:
                break
            batch = data[header.position : header.position + header.size]
            if header.next_offset > gap.end.offset and is_filler(header):
                batch = bytes(filler(offset, gap.end.offset, header.partition_leader_epoch))
                header = BatchHeader(0, *HEADER.unpack_from(batch))
            if (
                header.base_offset != offset
                or header.partition_leader_epoch != history.epoch_of(index)
                or header.is_marker != history.is_marker(index)
                or crc_of(batch, 0, len(batch)) != header.crc
            ):
                break
            parts.append(batch)
            offset = header.next_offset
            index = Index(index + header.index_count)
    except ApiError:
        pass  # Not even a header.
    found = b"".join(parts)
    return found, Place(gap.start.position + len(found), offset, index)


def fits_in_place(gap: Gap, data: bytes, *, is_same: bool) -> bool:
    """Whether these batches can be written over the gap: they have its size, and the segment's
    index, markers and timestamps stay true. False if the index must be rebuilt first, from damaged
    headers.

    `is_same`: no replica ever compacted the log, so they are the lost batches. Otherwise the
    headers in the gap must be the same."""
    segment, start, end = gap.segment, gap.start.position, gap.end.position
    if len(data) != end - start:
        return False
    found = [_facts(header, start) for header in iterate_headers(data)]
    begins = {position for position, *_ in found}
    position = start
    try:
        while (position := segment.index.after(position, end)) < end:
            if position not in begins:
                return False
        return is_same or found == [_facts(header, 0) for header in segment.headers(start, end)]
    except (OSError, StorageError):
        return False


def _facts(header: BatchHeader, start: int) -> tuple[int, int, int, int, bool]:
    """The fields of a batch that the segment knows too, its position first."""
    return (
        start + header.position,
        header.base_offset,
        header.last_offset_delta,
        header.max_timestamp,
        header.is_marker,
    )
