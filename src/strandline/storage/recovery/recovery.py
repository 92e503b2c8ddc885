"""Opens a log after any end of the process that wrote it.

Why:    an entry that was not flushed must not count, and an entry that was flushed must not be
        dropped silently.
How:    finish an interrupted reset -> for each segment in order: use its summary if that fits,
        else scan headers and CRCs -> rewrite what nothing calls flushed (`renewal`)
        -> cut the torn tail, remove segments that do not follow -> flush names and bytes.
        With `defer_flush` the caller flushes, once for many logs. Until then no summary of a
        scanned segment is written: it would call the segment durable.
        The summary of the last segment may cover only its head; the rest is scanned.
        A segment with a fitting summary was durable, and so was everything before it. A bad batch
        below that, or below a flushed mark (the log's last one, or the caller's), is corruption:
        StorageError.
Source: design section 4; "Protocol-Aware Recovery", FAST'18: a torn tail is not corruption."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from strandline.base.disk import Disk, is_unreadable
from strandline.base.errors import ApiError, StorageError
from strandline.model.ids import Index
from strandline.records.batch import BatchHeader
from strandline.records.marker import Marker, parse_marker
from strandline.storage.config import LogConfig
from strandline.storage.layout import (
    CLAIMS,
    CLEANED,
    FIRST_SEGMENT,
    FLUSHED,
    LOG,
    RESET,
    START,
    SUMMARY,
    SegmentName,
    SegmentSummary,
    make_durable_directory,
    read_checked,
)
from strandline.storage.log.history import History
from strandline.storage.log.index import IndexCache
from strandline.storage.log.name_changes import (
    finish_removals,
    finish_replacements,
    parsed_names,
    remove_segment_files,
)
from strandline.storage.log.reads import segment_at_index
from strandline.storage.log.scan import is_zero, verified_batches
from strandline.storage.log.sealing import (
    create_mark,
    lower_mark,
    read_flushed,
    read_producers,
    read_summary,
    restore_segment,
    seal_segment,
)
from strandline.storage.log.segment import Segment
from strandline.storage.producers.producers import ProducerStates
from strandline.storage.producers.replay import replay_producers
from strandline.storage.recovery.renewal import Renewal

PAGE_BYTES_MAX = 64 << 10


@dataclass(slots=True)
class RecoveredLog:
    """A log as found. All of it is durable, except with `defer_flush`; the last segment is the
    active one."""

    segments: list[Segment]
    history: History
    producers: ProducerStates
    cache: IndexCache
    unsealed: list[Segment]
    """Closed segments to seal once they are durable."""
    old_marks: set[SegmentName]
    """Closed segments that may have a mark beside them."""
    noted_index: Index
    """The highest index in a mark that was found."""


class LogRecovery:
    """One opening of one log's directory."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        *,
        config: LogConfig,
        now_ms: int,
        flushed_index: Index,
        cut_corruption: bool,
        defer_flush: bool = False,
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._config = config
        self._now_ms = now_ms
        self._flushed_index = flushed_index
        self._noted_index = Index(-1)
        self._cut_corruption = cut_corruption
        self._defer_flush = defer_flush
        self._uses_summaries = True
        self._is_new = False
        self._next_name: SegmentName | None = None
        """The name of the segment that follows the one being opened."""
        self._cache = IndexCache()
        self._segments: list[Segment] = []
        self._history = History(FIRST_SEGMENT)
        self._producers: ProducerStates | None = ProducerStates()
        """The producers at the end of the segments so far; None while unknown."""
        self._unsealed: list[Segment] = []
        self._files: list[tuple[SegmentName, str]] = []
        """The names in the directory; see `parsed_names`."""

    def run(self) -> RecoveredLog:
        """Recover. Raises StorageError for corruption, OSError for a disk that fails."""
        try:
            return self._recover()
        except StorageError:
            if not self._cut_corruption:
                raise
        # The damage is in a segment that was not scanned because of its summary: scan everything.
        for segment in self._segments:
            segment.release()
        self._segments.clear()
        self._unsealed.clear()
        self._producers = ProducerStates()
        self._uses_summaries = False
        return self._recover()

    def _recover(self) -> RecoveredLog:
        names = self._find_segments()
        summaries = {name: self._summary_of(name, is_last=name is names[-1]) for name in names}
        self._read_claims(summaries)
        self._history = History(names[0])
        if names[0] != FIRST_SEGMENT:
            self._producers = None  # Some wrote before it.
        for at, (name, summary) in enumerate(summaries.items()):
            self._next_name = names[at + 1] if at + 1 < len(names) else None
            if self._segments and name.base_index < self._segments[-1].end_index:
                self._remove_segments([name])  # A merge of segments had got as far as its rename.
            elif self._segments and not self._follows(name):
                if any(self._follows(one) for one in names[at + 1 :]):
                    self._remove_segments([name])  # Of a roll that found no space for its name.
                    continue
                self._drop(names[at:])
                break
            else:
                self._open_segment(name, summary, is_last=at + 1 == len(names))
        self._check_end()
        producers = self._recover_producers()
        self._remove_strays()
        old_marks = {name for name, suffix in self._files if suffix == FLUSHED}
        return RecoveredLog(
            segments=self._segments,
            history=self._history,
            producers=producers,
            cache=self._cache,
            unsealed=self._unsealed,
            old_marks=old_marks - {self._segments[-1].name},
            noted_index=self._noted_index,
        )

    def _summary_of(self, name: SegmentName, *, is_last: bool) -> SegmentSummary | None:
        if not self._uses_summaries:
            return None
        return read_summary(self._disk, self._directory, name, may_be_head=is_last)

    # ---- the directory ----

    def _find_segments(self) -> list[SegmentName]:
        """The names of the log's segments in order, after tidying up; at least one."""
        disk, directory = self._disk, self._directory
        if self._defer_flush:
            disk.make_directories(directory)
        else:
            make_durable_directory(disk, directory)
        self._files = parsed_names(disk, directory)
        if any(suffix in (START, RESET) for _, suffix in self._files):
            finish_removals(disk, directory)
        if any(suffix in (START, RESET, CLEANED) for _, suffix in self._files):
            finish_replacements(disk, directory)
            self._files = parsed_names(disk, directory)
        names = [name for name, suffix in self._files if suffix == LOG]
        if not names:
            disk.open(f"{directory}/{FIRST_SEGMENT.stem}{LOG}", create=True).close()
            names.append(FIRST_SEGMENT)
            self._is_new = True
        names.sort(key=_order)
        if (names[-1], FLUSHED) not in self._files:
            create_mark(disk, directory, names[-1])
        if not self._defer_flush:
            # Also what is found: a process may have been killed between a name and its flush.
            disk.flush_directory(directory)
        return names

    def _read_claims(self, fitting: Mapping[SegmentName, SegmentSummary | None]) -> None:
        """Read which entries were durable, also from files of segments that have grown or are gone.

        `fitting`: the summaries that fit, of the segments that are there."""
        marks = [file for file in self._files if file[1] == FLUSHED]
        summaries = [file for file in self._files if file[1] == SUMMARY]
        self._noted_index = claimed_index(
            self._disk, self._directory, marks, {}, may_miss=self._cut_corruption
        )
        claimed = claimed_index(self._disk, self._directory, summaries, fitting)
        self._flushed_index = max(self._flushed_index, self._noted_index, claimed)

    def _remove_strays(self) -> None:
        """Remove the files beside segments that no longer exist."""
        known = {segment.name for segment in self._segments} | {self._end_name()}
        if all(name in known for name, _ in self._files):
            return  # Files written during the recovery belong to a segment.
        for name, suffix in parsed_names(self._disk, self._directory):
            if name not in known:
                self._disk.remove(f"{self._directory}/{name.stem}{suffix}")

    def _end_name(self) -> SegmentName:
        return _name_at_end(self._segments[-1], self._history)

    def _follows(self, name: SegmentName) -> bool:
        return name == self._end_name()

    def _drop(self, names: list[SegmentName]) -> None:
        """Remove segments that do not follow the ones before them. The only mark of the remaining
        log may lie beside them."""
        self._check_end()
        last = self._segments[-1]
        index = min(self._flushed_index, Index(last.end_index - 1))
        if index >= 0:
            lower_mark(self._disk, self._directory, last.name, index)
        self._remove_segments(names)

    def _check_end(self) -> None:
        """Check that all flushed entries are there."""
        last = self._segments[-1]
        if last.end_index > self._flushed_index:
            return
        if self._cut_corruption:
            self._remove_claims(last)
            beyond = {name for name, _ in self._files if name.base_index >= last.end_index}
            self._remove_segments(sorted(beyond - {last.name}))
        else:
            raise StorageError(
                last.path(LOG),
                last.size_bytes,
                expected=f"entries up to index {self._flushed_index}, which were flushed",
                found=f"an end at index {last.end_index}",
            )

    def _remove_segments(self, names: list[SegmentName]) -> None:
        remove_segment_files(self._disk, self._directory, names)

    # ---- one segment ----

    def _open_segment(
        self, name: SegmentName, summary: SegmentSummary | None, *, is_last: bool
    ) -> None:
        segment = Segment(
            self._disk,
            self._directory,
            name,
            cache=self._cache,
            index_interval_bytes=self._config.index_interval_bytes,
        )
        if summary is not None:
            restore_segment(segment, self._history, summary)
            self._producers = None
            if summary.producers is not None:
                self._producers = ProducerStates(summary.producers)
            if is_last:
                segment.open_index()
            if is_last and segment.file.size() > segment.size_bytes:
                self._scan_segment(segment, is_last=True)
            elif (is_last or summary.producers is not None) and not self._defer_flush:
                # It may have been cut to the size of its head by a cut that was not flushed.
                self._disk.flush_now(segment.file)
        else:
            self._scan_segment(segment, is_last=is_last)
            if not is_last and self._defer_flush:
                self._unsealed.append(segment)
            elif not is_last:
                with contextlib.suppress(OSError):  # Without its files, it is scanned again.
                    seal_segment(self._disk, segment, self._history, keep_index=False)
        self._segments.append(segment)

    def _scan_segment(self, segment: Segment, *, is_last: bool) -> None:
        """Scan the part of the segment that its summary does not cover."""
        head_bytes = segment.size_bytes
        if self._producers is None or (self._segments and not head_bytes):
            # Known by the headers so far, too: but compaction has left a few of each producer.
            name = _name_at_end(segment, self._history) if head_bytes else segment.name
            producers = read_producers(self._disk, self._directory, name)
            if producers is not None:
                self._producers = ProducerStates(producers)
        file = segment.file
        found_bytes = file.size()
        written = file.written_end()
        if self._history.is_epoch_covered is None:
            self._history.is_epoch_covered = is_last_epoch_covered(
                [*self._segments, segment], self._history
            )
        batches = noted_batches(segment, self._history, end=found_bytes, until=written)
        renewal = Renewal(file)
        for header, chunk, at in self._readable(segment, batches):
            if self._producers is not None:
                self._producers.update(header, self._now_ms)
            if segment.end_index > self._flushed_index + 1:
                renewal.add(header.position, chunk, at, header.size)
        renewal.finish()
        if found_bytes > segment.size_bytes:
            self._check_tail(segment)
            if not head_bytes or segment.end_index <= self._flushed_index:
                self._remove_claims(segment)
            if is_last and _is_blank(segment, written):
                segment.allocated_bytes = found_bytes  # Reserved for what comes next.
            else:
                segment.file.truncate(segment.size_bytes)
                segment.allocated_bytes = segment.size_bytes
        if not self._defer_flush and not self._is_new:
            self._disk.flush_now(file)  # An empty one, too: a cut may have ended before its flush.

    def _readable(
        self, segment: Segment, batches: Iterator[tuple[BatchHeader, bytes, int]]
    ) -> Iterator[tuple[BatchHeader, bytes, int]]:
        """The batches up to the first unreadable one, which may have been flushed: StorageError,
        unless `cut_corruption`."""
        try:
            yield from batches
        except OSError as error:
            if not is_unreadable(error):
                raise
            if not self._cut_corruption:
                raise StorageError(
                    segment.path(LOG),
                    segment.size_bytes,
                    expected=f"the batch of index {segment.end_index}",
                    found=str(error),
                ) from error

    def _check_tail(self, segment: Segment) -> None:
        """Check that the missing rest of the segment had not been flushed."""
        if self._cut_corruption:
            return
        follows = _name_at_end(segment, self._history) == self._next_name
        if follows and _is_zero_behind(segment):
            return  # Nothing is missing: space that a roll gave back, which was not flushed.
        is_flushed = segment.end_index <= self._flushed_index
        if is_flushed or ends_at_other_epoch(segment):
            why = "which was flushed" if is_flushed else "of which all is there but its epoch"
            raise StorageError(
                segment.path(LOG),
                segment.size_bytes,
                expected=f"the batch of index {segment.end_index}, {why}",
                found=_bytes_behind(segment),
            )

    def _remove_claims(self, segment: Segment) -> None:
        """Correct the mark and summary of a segment that is about to be cut."""
        if segment.end_index <= self._flushed_index:
            lower_mark(self._disk, self._directory, segment.name, Index(segment.end_index - 1))
        summary = segment.path(SUMMARY)
        if self._disk.exists(summary):
            self._disk.remove(summary)
            self._disk.flush_directory(self._directory)

    # ---- producers ----

    def _recover_producers(self) -> ProducerStates:
        if self._producers is not None:
            return self._producers
        producers = read_producers(self._disk, self._directory, self._end_name())
        if producers is not None:
            return ProducerStates(producers)
        return replay_producers(
            self._disk, self._directory, self._segments, now_ms=self._now_ms, skips_damage=True
        )


def _is_blank(segment: Segment, written: int) -> bool:
    """Whether only reserved space lies behind the end; `written` is the end of a written page."""
    rest = written - segment.size_bytes
    if rest <= 0:
        return True
    try:
        return rest < PAGE_BYTES_MAX and not any(segment.file.pread(rest, segment.size_bytes))
    except OSError:
        return False  # The rest is cut, and written again.


def _is_zero_behind(segment: Segment) -> bool:
    """Whether only zeros lie behind the end; true if the disk cannot read them."""
    try:
        return is_zero(segment.file, segment.size_bytes, segment.file.size())
    except OSError as error:
        if not is_unreadable(error):
            raise
        return True


def _bytes_behind(segment: Segment) -> str:
    try:
        return f"bytes {segment.file.pread(16, segment.size_bytes).hex()}"
    except OSError as error:
        return str(error)


def _name_at_end(segment: Segment, history: History) -> SegmentName:
    """The name of a segment that would begin at the end of this one, the last."""
    markers = segment.end_index - segment.end_offset
    return SegmentName(segment.end_offset, markers, history.last_epoch)


def claimed_index(
    disk: Disk,
    directory: str,
    files: Iterable[tuple[SegmentName, str]],
    fitting: Mapping[SegmentName, SegmentSummary | None],
    *,
    may_miss: bool = False,
) -> Index:
    """The highest index that a mark or summary in the directory calls durable; -1 for none.

    `fitting`: the summaries that fit, of the segments that are there. `may_miss`: ignore an
    unreadable mark; otherwise it raises StorageError."""
    claimed = Index(-1)
    for name, suffix in files:
        if suffix not in CLAIMS:
            continue
        if suffix == FLUSHED:
            try:
                index = read_flushed(disk, directory, name)
            except StorageError:
                if not may_miss:
                    raise
                continue
        else:
            path = f"{directory}/{name.stem}{suffix}"
            summary = fitting.get(name) or read_checked(disk, path, SegmentSummary)
            index = Index(-1 if summary is None else summary.end_index - 1)
        claimed = max(claimed, index)
    return claimed


def noted_batches(
    segment: Segment, history: History, *, end: int, until: int | None = None
) -> Iterator[tuple[BatchHeader, bytes, int]]:
    """The batches that count behind the known end of the segment, as `verified_batches` gives them.
    Notes each in the segment and in the history, which ends there. No batch lies beyond `end`, or
    begins at or above `until`.

    Raises StorageError for a marker of an unknown kind."""
    batches = verified_batches(
        segment.file,
        segment.size_bytes,
        end=end,
        until=end if until is None else until,
        offset=segment.end_offset,
        epoch=history.last_epoch if segment.size_bytes else segment.name.previous_epoch,
        is_epoch_covered=bool(history.is_epoch_covered),
    )
    for header, chunk, at in batches:
        index = segment.end_index
        history.note_epoch(header.partition_leader_epoch, index)
        if header.is_marker:
            history.is_epoch_covered = header.covers_epoch
            marker = _read_marker(chunk, at, segment)
            history.note_marker(index, marker.configuration, marker.deleted_before, marker.tier)
        segment.note(header)
        yield header, chunk, at


def ends_at_other_epoch(segment: Segment) -> bool:
    """Whether a scan of the segment ended before a batch that is whole and right but for its epoch:
    that is damage, not a torn tail."""
    whole = verified_batches(
        segment.file,
        segment.size_bytes,
        end=segment.file.size(),
        until=segment.size_bytes + 1,
        offset=segment.end_offset,
        epoch=None,
    )
    try:
        return next(whole, None) is not None
    except OSError as error:
        if not is_unreadable(error):
            raise
        return False  # Unknown.


def is_last_epoch_covered(segments: Sequence[Segment], history: History) -> bool:
    """Whether the last epoch is certain: by the checksum of the marker that began it, or, if the
    log no longer has that marker, by the name of the first segment."""
    start = history.start
    if not history.epochs:
        return start != FIRST_SEGMENT
    last, first = history.epochs[-1]
    if first == start.base_index and not history.is_marker(first):
        return start != FIRST_SEGMENT and last == start.previous_epoch
    segment = segments[segment_at_index(segments, first)]
    try:
        header = segment.find_index(first, history.offset_of(first))
    except (OSError, StorageError):
        return False
    return header.is_marker and header.covers_epoch


def _read_marker(chunk: bytes, at: int, segment: Segment) -> Marker:
    try:
        return parse_marker(chunk, at)
    except ApiError as error:
        raise StorageError(
            segment.path(LOG),
            segment.size_bytes,
            expected="a marker of a known kind",
            found=str(error),
        ) from error


def _order(name: SegmentName) -> Index:
    return name.base_index
