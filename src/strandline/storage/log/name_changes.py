"""Renames and removes several files of a log as one step, through crashes.

Why:    a rename or a removal of one file is atomic, but a log has many files. After a crash in the
        middle, missing segments, or a half-replaced one, would look like a loss.
How:    an intent file says which files are about to go; the next opening of the log finishes the
        removal. A rewritten segment takes its place by one rename. The claims that the old segment
        was durable are removed before. If a crash leaves neither the claims nor the rename, the
        opening renames the new segment, which is durable by then: the old one may be damaged, and
        without its claims no check would notice.
Owns:   nothing; the disk is handed in.
Source: design section 4; "All File Systems Are Not Created Equal", OSDI'14."""

from strandline.base.disk import Disk, is_unreadable
from strandline.model.ids import Offset
from strandline.storage.layout import (
    CLAIMS,
    CLEANED,
    LOG,
    RESET,
    START,
    SUMMARY,
    SegmentName,
    parse_name,
)
from strandline.storage.log.scan import verified_batches
from strandline.storage.log.sealing import create_mark


def parsed_names(disk: Disk, directory: str) -> list[tuple[SegmentName, str]]:
    """(what the name says, suffix) of each file of the log."""
    return [found for found in map(parse_name, disk.list_directory(directory)) if found is not None]


def remove_segment_files(disk: Disk, directory: str, names: list[SegmentName]) -> None:
    """Remove all files of these segments, and make that durable.

    Claims go first: no claim may call a segment durable that a crash brings back."""
    doomed = [
        (file, parsed[1])
        for file in disk.list_directory(directory)
        if (parsed := parse_name(file)) is not None and parsed[0] in names
    ]
    claims = [file for file, suffix in doomed if suffix in CLAIMS]
    for file in claims:
        disk.remove(f"{directory}/{file}")
    if claims:
        disk.flush_directory(directory)
    for file, _ in doomed:
        disk.remove(f"{directory}/{file}")
    disk.flush_directory(directory)


def declare(disk: Disk, directory: str, start: SegmentName, suffix: str) -> str:
    """Create the file that says where the log is about to begin, and return its path.

    `remove_before` and `reset` create it too. It needs disk space and they need no more, so a
    caller that must not fail half-way calls this first. Raises OSError."""
    intent = f"{directory}/{start.stem}{suffix}"
    disk.open(intent, create=True).close()
    return intent


def remove_before(disk: Disk, directory: str, start: SegmentName) -> None:
    """Remove all files of the segments before `start`: after a crash either all are gone or none.

    All or none, because missing segments in the middle would look like a loss."""
    intent = declare(disk, directory, start, START)
    disk.flush_directory(directory)
    for file in disk.list_directory(directory):
        parsed = parse_name(file)
        if parsed is not None and parsed[0].base_index < start.base_index:
            disk.remove(f"{directory}/{file}")
    disk.flush_directory(directory)
    disk.remove(intent)


def finish_removals(disk: Disk, directory: str) -> None:
    """Finish a `remove_before` or `reset` that was under way when the process ended."""
    for file in disk.list_directory(directory):
        parsed = parse_name(file)
        if parsed is None:
            continue
        if parsed[1] == START:
            remove_before(disk, directory, parsed[0])
        elif parsed[1] == RESET:
            reset(disk, directory, parsed[0])
            return


def reset(disk: Disk, directory: str, start: SegmentName) -> None:
    """Replace the log by an empty one that begins at `start`; a crash leaves one of the two."""
    intent = declare(disk, directory, start, RESET)
    disk.flush_directory(directory)
    for file in disk.list_directory(directory):
        parsed = parse_name(file)
        if parsed is not None and parsed[1] != RESET:
            disk.remove(f"{directory}/{file}")
    disk.flush_directory(directory)
    disk.rename(intent, f"{directory}/{start.stem}{LOG}")
    create_mark(disk, directory, start)
    disk.flush_directory(directory)


def finish_replacements(disk: Disk, directory: str) -> None:
    """Finish a `SegmentRow.replace` that was under way when the process ended, and remove segments
    that were being written."""
    files = set(parsed_names(disk, directory))
    for name, suffix in files:
        if suffix != CLEANED:
            continue
        path = f"{directory}/{name.stem}{CLEANED}"
        has_begun = (name, LOG) in files and (name, SUMMARY) not in files
        if has_begun and (_end_of(disk, path, name), LOG) in files - {(name, LOG)}:
            file = disk.open(path)
            disk.flush_now(file)
            file.close()
            disk.flush_directory(directory)  # No claim about the old segment may cover the new one.
            disk.rename(path, f"{directory}/{name.stem}{LOG}")
            disk.flush_directory(directory)
        else:
            disk.remove(path)


def _end_of(disk: Disk, path: str, name: SegmentName) -> SegmentName | None:
    """The name of the segment that follows these bytes; None if they are not whole."""
    file = disk.open(path)
    size = file.size()
    end = name
    position = 0
    try:
        batches = verified_batches(
            file, 0, end=size, until=size, offset=name.base_offset, epoch=name.previous_epoch
        )
        for header, _, _ in batches:
            position += header.size
            markers = end.markers_before + header.is_marker
            end = SegmentName(Offset(header.next_offset), markers, header.partition_leader_epoch)
    except OSError as error:
        if not is_unreadable(error):
            raise
        return None
    finally:
        file.close()
    return end if position == size else None
