"""Reads and writes the small files beside a segment.

Why:    a restart reads a page for each closed segment instead of the segment; and it can tell a
        torn tail from damage of durable batches.
How:    the files are written once the segment is durable, and used only if they fit it. The summary
        holds the segment's size and the CRCs of the index files, and each file is checked by
        itself. So any of them may be lost or stale at the cost of a scan. Only the mark has a flush
        of its own.
Source: design section 4."""

import contextlib
from struct import Struct
from typing import NamedTuple

from strandline.base.disk import Disk, File, is_full
from strandline.model.ids import Index
from strandline.storage.layout import (
    FLUSHED,
    INDEX,
    LOG,
    PRODUCERS,
    SUMMARY,
    TIME_INDEX,
    SegmentName,
    SegmentSummary,
    checksum,
    decode_checked,
    read_alone,
    read_beside,
    read_checked,
    write_checked,
    write_whole,
)
from strandline.storage.log.checksum_verification import Unverified
from strandline.storage.log.history import History
from strandline.storage.log.segment import MarkerSpan, Segment
from strandline.storage.producers.producers import ProducerSnapshot

_MARK = Struct(">IBq")
"""CRC-32C, MessagePack's tag of what follows, an index: a checksummed file of one size."""
_INT64 = 0xD3


class SealFiles(NamedTuple):
    """The contents of the files beside a segment: its indexes as bytes, and its summary."""

    offsets: bytes
    times: bytes
    summary: SegmentSummary


def seal_segment(disk: Disk, segment: Segment, history: History, *, keep_index: bool) -> None:
    """Write index, time index and summary of a segment that is durable. Raises OSError."""
    files = describe(segment, history)
    write_seal(disk, segment, files)
    crcs = (files.summary.index_crc, files.summary.time_index_crc)
    segment.close_index(crcs, keep=keep_index)


def describe(
    segment: Segment, history: History, *, producers: ProducerSnapshot | None = None
) -> SealFiles:
    """The files beside a segment as it is now; `producers` for one that is still written to."""
    offsets = segment.index.encode_offsets()
    times = segment.index.encode_times()
    crcs = (checksum(offsets), checksum(times))
    summary = summarize(segment, history, index_crcs=crcs, producers=producers)
    return SealFiles(offsets, times, summary)


def write_seal(disk: Disk, segment: Segment, files: SealFiles) -> None:
    """Write them; what they speak of is durable. Raises OSError."""
    write_whole(disk, segment.path(INDEX), files.offsets)
    write_whole(disk, segment.path(TIME_INDEX), files.times)
    write_checked(disk, segment.path(SUMMARY), files.summary)


def summarize(
    segment: Segment,
    history: History,
    *,
    index_crcs: tuple[int, int],
    producers: ProducerSnapshot | None = None,
) -> SegmentSummary:
    """The summary of a segment; `history` is the log's, or the segment's own."""
    first, end = segment.name.base_index, segment.end_index
    epochs = history.epochs_between(first, end)
    return SegmentSummary(
        size_bytes=segment.size_bytes,
        end_offset=segment.end_offset,
        end_index=end,
        last_epoch=epochs[-1][0] if epochs else segment.name.previous_epoch,
        max_timestamp=segment.max_timestamp,
        max_timestamp_offset=segment.max_timestamp_offset,
        markers=[(span.raft_index, span.position, span.size) for span in segment.markers],
        epochs=epochs,
        configurations=history.configurations_between(first, Index(end - 1)),
        index_crc=index_crcs[0],
        time_index_crc=index_crcs[1],
        deletions=history.deletions_between(first, Index(end - 1)),
        producers=producers,
        tier_markers=history.tier_markers_between(first, Index(end - 1)),
        tier_forgotten=history.tier_forgotten,
    )


def read_summary(
    disk: Disk, directory: str, name: SegmentName, *, may_be_head: bool = False
) -> SegmentSummary | None:
    """The summary of a segment, when there is one and the segment has the size it speaks of.

    With `may_be_head` also when the segment is larger: then it speaks of the beginning only."""
    path = f"{directory}/{name.stem}"
    summary = read_checked(disk, path + SUMMARY, SegmentSummary)
    if summary is None:
        return None
    file = disk.open(path + LOG)
    try:
        rest_bytes = file.size() - summary.size_bytes
        return summary if rest_bytes == 0 or (may_be_head and rest_bytes > 0) else None
    finally:
        file.close()


def restore_segment(segment: Segment, history: History, summary: SegmentSummary) -> None:
    """Restore a segment, the next of the log, from its summary."""
    segment.size_bytes = summary.size_bytes
    segment.end_offset = summary.end_offset
    segment.end_index = summary.end_index
    segment.max_timestamp = summary.max_timestamp
    segment.max_timestamp_offset = summary.max_timestamp_offset
    segment.markers = [MarkerSpan(*span) for span in summary.markers]
    segment.unverified = Unverified(summary.size_bytes, summary.epochs)
    history.is_epoch_covered = None
    for epoch, index in summary.epochs:
        history.note_epoch(epoch, index)
    configurations = dict(summary.configurations)
    deletions = dict(summary.deletions)
    tier = dict(summary.tier_markers)
    history.tier_forgotten = max(history.tier_forgotten, summary.tier_forgotten)
    for index, _, _ in segment.markers:
        history.note_marker(index, configurations.get(index), deletions.get(index), tier.get(index))
    segment.close_index((summary.index_crc, summary.time_index_crc), keep=False)


def write_producers(
    disk: Disk, directory: str, name: SegmentName, producers: ProducerSnapshot
) -> None:
    """Write the producers as they are before the entry that `name` begins with. Raises OSError."""
    write_checked(disk, f"{directory}/{name.stem}{PRODUCERS}", producers)


def write_durably(
    disk: Disk, directory: str, name: SegmentName, producers: ProducerSnapshot
) -> None:
    """As `write_producers`, and flush it: the headers before the segment are about to be removed.
    Rewrites an existing file, because an earlier process may have failed to flush it."""
    write_producers(disk, directory, name, producers)
    file = disk.open(f"{directory}/{name.stem}{PRODUCERS}")
    try:
        disk.flush_now(file)
    finally:
        file.close()


def read_producers(disk: Disk, directory: str, name: SegmentName) -> ProducerSnapshot | None:
    """The producers in the file; None if it is absent, damaged or unreadable."""
    data = read_beside(disk, f"{directory}/{name.stem}{PRODUCERS}")
    return None if data is None else decode_checked(data, ProducerSnapshot)


def create_mark(disk: Disk, directory: str, name: SegmentName) -> None:
    """Create the empty file for `write_flushed`; the directory is not flushed. If that fails, it is
    created later."""
    with contextlib.suppress(OSError):
        file = disk.open(f"{directory}/{name.stem}{FLUSHED}", create=True)
        if file.size():  # It belonged to a lost segment of the same name.
            file.truncate(0)
        file.close()


def lower_mark(disk: Disk, directory: str, name: SegmentName, index: Index) -> bool:
    """As `flush_mark`; on a full disk it removes the mark and returns False."""
    try:
        flush_mark(disk, directory, name, index)
    except OSError as error:
        if not is_full(error):
            raise
        disk.remove(f"{directory}/{name.stem}{FLUSHED}")
        disk.flush_directory(directory)
        return False
    return True


def flush_mark(disk: Disk, directory: str, name: SegmentName, index: Index) -> None:
    """Replace the mark by one that says that the log is durable up to `index`, and flush it.
    Blocks. Raises OSError."""
    file = write_flushed(disk, directory, name, index)
    try:
        disk.flush_now(file)
    finally:
        file.close()


def write_flushed(disk: Disk, directory: str, name: SegmentName, index: Index) -> File:
    """Write that the log is durable up to `index`, valid until a cut below it. Returns the file,
    for the caller to flush and close. Raises OSError."""
    path = f"{directory}/{name.stem}{FLUSHED}"
    try:
        file = disk.open(path)
    except FileNotFoundError:
        file = disk.open(path, create=True)
        disk.flush_directory(directory)
    crc = checksum(_MARK.pack(0, _INT64, index)[4:])
    try:
        file.pwrite((_MARK.pack(crc, _INT64, index),), 0)
    except OSError:
        file.close()
        raise
    return file


def read_flushed(disk: Disk, directory: str, name: SegmentName) -> Index:
    """The index of the newest mark that survived; -1 if it is absent or damaged."""
    path = f"{directory}/{name.stem}{FLUSHED}"
    # Without it recovery cannot tell a torn tail from damage, so a read error is an error.
    data = read_alone(disk, path, expected="a mark")
    return Index(-1) if data is None else decode_mark(data)


def decode_mark(data: bytes) -> Index:
    """The index in a mark; -1 if it is damaged."""
    index = decode_checked(data, int)
    return Index(-1 if index is None else index)
