"""What directories that stand for buckets hold, and what brokers' logs do: byte for byte."""

from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from strandline.records.batch import HEADER_BYTES, MAGIC, iterate_headers, read_header
from strandline.tiered.segments.names import parse_segment_name
from strandline.tiered.segments.trailer import FOOTER, Trailer, trailer_bytes


class Stored(NamedTuple):
    """One object: the records of [base, end), and its data."""

    base: int
    end: int
    data: bytes


def objects_in(bucket: Path) -> dict[int, list[Stored]]:
    """{partition: its objects in a bucket, by their first offset}. Each trailer is verified, and
    each chunk by it."""
    found: dict[int, list[Stored]] = defaultdict(list)
    for path in sorted(bucket.rglob("*.segment")):
        name = parse_segment_name(str(path.relative_to(bucket)))
        assert name is not None, path
        content = path.read_bytes()
        size = trailer_bytes(content[-FOOTER.size :])
        trailer = Trailer.parse(content[-size:])
        data = content[:-size]
        assert trailer.data_bytes == len(data)
        for chunk in range(trailer.chunk_count):
            start, end = trailer.chunk_range(chunk)
            assert trailer.chunk_matches(chunk, data[start:end])
        assert name.base_offset == trailer.base_offset
        found[name.partition].append(Stored(trailer.base_offset, trailer.end_offset, data))
    for one in found.values():
        one.sort()
    return found


def ends_of(bucket: Path) -> dict[int, int]:
    """{partition: up to where a bucket has all records from the first object on}. Objects that
    another attempt stored again count once."""
    ends: dict[int, int] = {}
    for partition, objects in objects_in(bucket).items():
        end = objects[0].base
        for one in objects:
            if one.base == end:
                end = one.end
        ends[partition] = end
    return ends


def log_files(cluster: Path, broker: int, topic: str, partition: int) -> list[Path]:
    """The segments of a partition on a broker's disk."""
    logs = cluster / f"broker-{broker}" / "data" / "logs"
    return sorted(logs.glob(f"{topic}-{partition}.*/*.log"))


def log_data(cluster: Path, broker: int, topic: str, partition: int) -> dict[int, bytes]:
    """{base offset: batch} of every data batch in a partition's log on a broker's disk. Behind the
    last one is space that is reserved, all zero."""
    found: dict[int, bytes] = {}
    for path in log_files(cluster, broker, topic, partition):
        content = path.read_bytes()
        position = 0
        while len(content) - position > HEADER_BYTES and content[position + 16] == MAGIC:
            header = read_header(content, position)
            if header is None:
                break
            position += header.size
            if not header.is_marker:
                found[header.base_offset] = content[header.position : position]
    return found


def batches_of(objects: list[Stored]) -> dict[int, bytes]:
    """{base offset: batch} of every batch in some objects."""
    return {
        header.base_offset: one.data[header.position : header.position + header.size]
        for one in objects
        for header in iterate_headers(one.data)
    }
