"""Reads the state of a log's directory without changing anything.

Why:    an operator who examines a stopped broker's disk must see it as it is, before a start tidies
        up.
How:    reads the names, then for each segment its summary if that fits, else a scan, as recovery
        does. A removal that a crash interrupted counts as done.
Owns:   nothing; each call reads anew.
Source: docs/reference/cli.md, `strandline log`."""

from collections.abc import Iterator
from dataclasses import dataclass

from strandline.base.disk import Disk
from strandline.base.errors import StorageError
from strandline.model.ids import Index, Offset
from strandline.records.batch import BatchHeader, crc_of
from strandline.records.marker import MarkerKind, parse_marker
from strandline.storage.config import LogConfig
from strandline.storage.layout import (
    FIRST_SEGMENT,
    LOG,
    RESET,
    START,
    SegmentName,
    SegmentSummary,
)
from strandline.storage.log.history import History
from strandline.storage.log.index import IndexCache
from strandline.storage.log.name_changes import parsed_names
from strandline.storage.log.sealing import read_producers, read_summary, restore_segment
from strandline.storage.log.segment import Segment
from strandline.storage.producers.replay import replay_producers
from strandline.storage.recovery.recovery import claimed_index, noted_batches


@dataclass(frozen=True, slots=True)
class LogFiles:
    """The names in a log's directory and what the small files beside the segments say."""

    directory: str
    names: list[SegmentName]
    """Of the segments, in order."""
    summaries: dict[SegmentName, SegmentSummary | None]
    """Those that fit their segment; None for the others."""
    flushed_index: Index
    """The highest index that a mark or summary calls durable; -1 for none."""
    reset_to: SegmentName | None
    """The start of a reset that a crash interrupted; None for none."""


@dataclass(frozen=True, slots=True)
class SurveyedSegment:
    """A segment as found."""

    segment: Segment
    file_bytes: int
    """The file's length: more than `segment.size_bytes` if space is reserved, or damage begins."""
    is_sealed: bool
    """Whether its summary fits: it was durable as a whole."""


@dataclass(frozen=True, slots=True)
class LogSurvey:
    """A log as found: segments up to the first that does not follow."""

    files: LogFiles
    segments: list[SurveyedSegment]
    history: History
    producers_count: int | None
    """Producers known at the end; None where damage hides them."""

    @property
    def end_offset(self) -> Offset:
        """The offset after the last batch that counts."""
        last = self.segments[-1].segment if self.segments else None
        return self.history.start.base_offset if last is None else last.end_offset

    @property
    def last_index(self) -> Index:
        """The index of the last entry that counts."""
        last = self.segments[-1].segment if self.segments else None
        return Index((self.history.start.base_index if last is None else last.end_index) - 1)


def is_log(disk: Disk, directory: str) -> bool:
    """Whether a directory holds a log."""
    return bool(parsed_names(disk, directory))


def read_files(disk: Disk, directory: str) -> LogFiles:
    """The names, the summaries and the claims. Raises OSError."""
    parsed = parsed_names(disk, directory)
    start = max((name.base_index for name, suffix in parsed if suffix == START), default=0)
    resets = [name for name, suffix in parsed if suffix == RESET]
    names = sorted(
        (name for name, suffix in parsed if suffix == LOG and name.base_index >= start),
        key=_base_index,
    )
    summaries = {name: read_summary(disk, directory, name) for name in names}
    return LogFiles(
        directory,
        names,
        summaries,
        claimed_index(disk, directory, parsed, summaries),
        resets[0] if resets else None,
    )


def survey_log(disk: Disk, directory: str) -> LogSurvey:
    """Survey a log. Raises OSError, StorageError if a marker cannot be read."""
    files = read_files(disk, directory)
    history = History(files.names[0] if files.names else FIRST_SEGMENT)
    found: list[SurveyedSegment] = []
    for name in files.names:
        if found and name != end_name(found[-1].segment, history):
            if name.base_index < found[-1].segment.end_index:
                continue  # A merge of segments had got as far as its rename.
            break
        segment = bare_segment(disk, directory, name)
        file_bytes = segment.file.size()
        summary = files.summaries[name]
        if summary is not None:
            restore_segment(segment, history, summary)
        else:
            for _ in noted_batches(segment, history, end=file_bytes):
                pass
        found.append(SurveyedSegment(segment, file_bytes, summary is not None))
    return LogSurvey(files, found, history, _producers_count(disk, directory, found, history))


def bare_segment(disk: Disk, directory: str, name: SegmentName) -> Segment:
    """A segment of which nothing has been read yet."""
    return Segment(
        disk,
        directory,
        name,
        cache=IndexCache(),
        index_interval_bytes=LogConfig().index_interval_bytes,
    )


def end_name(segment: Segment, history: History) -> SegmentName:
    """The name that the segment after this one must have; `history` ends where it does."""
    markers = segment.end_index - segment.end_offset
    return SegmentName(segment.end_offset, markers, history.last_epoch)


def read_batches(segment: Segment) -> Iterator[tuple[BatchHeader, bool, MarkerKind | None]]:
    """(header, whether its checksum is right, which marker it is) of each batch, in order.

    Raises StorageError where there is no header."""
    for header in segment.headers(0, segment.size_bytes):
        batch = segment.file.pread(header.size, header.position)
        is_sound = len(batch) == header.size and crc_of(batch, 0, len(batch)) == header.crc
        kind = parse_marker(batch).kind if is_sound and header.is_marker else None
        yield header, is_sound, kind


def first_timestamp(segment: Segment) -> int:
    """The timestamp with which the segment's first data batch begins; -1 for none.

    Raises StorageError where there is no header."""
    for header in segment.headers(0, segment.size_bytes):
        if not header.is_marker and header.records_count:
            return header.max_timestamp if header.has_append_time else header.base_timestamp
    return -1


def _producers_count(
    disk: Disk, directory: str, found: list[SurveyedSegment], history: History
) -> int | None:
    if not found:
        return 0
    snapshot = read_producers(disk, directory, end_name(found[-1].segment, history))
    if snapshot is not None:
        return len(snapshot.producers)
    segments = [one.segment for one in found]
    try:
        return len(replay_producers(disk, directory, segments, now_ms=0))
    except StorageError:
        return None


def _base_index(name: SegmentName) -> Index:
    return name.base_index
