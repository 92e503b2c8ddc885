"""Finds what may rot on a disk: closed segments, the files beside them, and what marks speak of.

Why:    a fault flips bits where the product must notice; a verdict asks whether any are left.
How:    reads the disk's files below the page cache.
Owns:   nothing.
Source: reliability reference 3 and 6; "Protocol-Aware Recovery" (FAST'18)."""

from strandline.base.errors import ApiError
from strandline.model.ids import Index
from strandline.records.batch import crc_matches, iterate_headers
from strandline.simulation.disk.disk import HostDisk
from strandline.simulation.disk.file_image import FileImage
from strandline.storage.layout import (
    FLUSHED,
    INDEX,
    LOG,
    PRODUCERS,
    SUMMARY,
    TIME_INDEX,
    SegmentName,
    parse_name,
)
from strandline.storage.log.sealing import decode_mark

BESIDE = (INDEX, TIME_INDEX, SUMMARY, PRODUCERS)


def closed_segments(disk: HostDisk) -> list[str]:
    """Segments that were durable as a whole: closed, and not the last of their log."""
    paths, last = _segments(disk)
    return [
        path
        for directory, name, path in paths
        if name != last[directory] and disk.tree.find(f"{directory}/{name.stem}{SUMMARY}")
    ]


def marked_parts(disk: HostDisk) -> list[tuple[str, int]]:
    """(segment, how many of its bytes) of what durable marks say was durable."""
    marked: dict[str, Index] = {}
    for path, image in disk.tree.files():
        directory, _, file = path.rpartition("/")
        if file.endswith(FLUSHED):
            index = decode_mark(image.durable.read(image.durable.size, 0))
            marked[directory] = max(marked.get(directory, index), index)
    paths, _ = _segments(disk)
    parts = []
    for directory, name, path in paths:
        segment = disk.tree.find(path)
        assert isinstance(segment, FileImage)
        end = _end_of(segment, name, marked.get(directory, Index(-1)))
        if end:
            parts.append((path, end))
    return parts


def _end_of(image: FileImage, name: SegmentName, index: Index) -> int:
    """Where in a segment the batch ends that ends at `index` or before it."""
    data = image.durable.read(image.durable.size, 0)
    position, next_index = 0, int(name.base_index)
    try:
        for header in iterate_headers(data):
            next_index += max(1, header.last_offset_delta + 1)
            if next_index > index + 1 or not crc_matches(data, header):
                break
            position = header.position + header.size
    except ApiError:
        pass
    return position


def files_beside(disk: HostDisk, names: list[str]) -> list[str]:
    """The files beside the segments of the logs of these names, as far as they hold anything: on
    the platter or, as nobody flushes them, in the page cache."""
    found = []
    for path, _ in disk.tree.files():
        directory, _, file = path.rpartition("/")
        parsed = parse_name(file)
        is_wanted = directory.rpartition("/")[2].startswith(tuple(names))
        if parsed is not None and is_wanted and parsed[1] in BESIDE and disk.cached_size_of(path):
            found.append(path)
    return found


def last_segments(disk: HostDisk, names: list[str]) -> list[str]:
    """The last segment of each log of these names."""
    paths, last = _segments(disk)
    return [
        path
        for directory, name, path in paths
        if name == last[directory] and directory.rpartition("/")[2].startswith(tuple(names))
    ]


def is_intact(image: FileImage) -> bool:
    """Whether each batch on the platter is what was written."""
    data = image.durable.read(image.durable.size, 0)
    end = 0
    try:
        for header in iterate_headers(data):
            end = header.position + header.size
            if not crc_matches(data, header):
                return False
    except ApiError:
        return False
    return end == len(data)


def has_rotten_segments(disk: HostDisk) -> bool:
    """Whether closed segments are not on the platter as they were written."""
    images = [disk.tree.find(path) for path in closed_segments(disk)]
    return not all(isinstance(image, FileImage) and is_intact(image) for image in images)


def _segments(
    disk: HostDisk,
) -> tuple[list[tuple[str, SegmentName, str]], dict[str, SegmentName]]:
    """All segments that hold anything durable, and the last one of each directory."""
    last: dict[str, SegmentName] = {}
    paths: list[tuple[str, SegmentName, str]] = []
    for path, _ in disk.tree.files():
        directory, _, file = path.rpartition("/")
        parsed = parse_name(file)
        if parsed is not None and parsed[1] == LOG and disk.size_of(path):
            name = parsed[0]
            known = last.setdefault(directory, name)
            last[directory] = max(known, name, key=lambda one: one.base_index)
            paths.append((directory, name, path))
    return paths, last
