"""Replicas in memory, and buckets in directories that hold their records: `file://` stores, read as
every other one is."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from uuid import UUID

import msgspec
from tests.pipeline.audit.fake_cluster import TOPIC, FakeCluster
from tests.storage.digest_world import CONFIG, Copy, filled

from strandline.client.buckets.options import BucketOptions
from strandline.model.ids import Offset
from strandline.pipeline.audit.buckets.tiers import Tiers, TierView
from strandline.pipeline.audit.results import AuditResult, Finding, Place, Verdict
from strandline.records.batch import BatchHeader, iterate_headers, read_header, seal
from strandline.tiered.objects.directory import MARK
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.writer import SegmentWriter

TIERED = replace(CONFIG, remote_storage=True)
PLACE: Place = (TOPIC, 0)
END = 24
EAST_CUTS, WEST_CUTS = (0, 6, 14, 20), (0, 10, 14, 22)
"""Where objects begin; the last one is where a bucket ends."""


def batches_of(copy: Copy, start: int, end: int) -> list[bytes]:
    """The data batches of a log that begin in [start, end)."""
    found: dict[int, bytes] = {}
    for part in copy.log.parts.find(Offset(start), Offset(end)):
        data = part.file.pread(part.end, 0)
        for header in iterate_headers(data):
            if not header.is_marker and start <= header.base_offset < end:
                found[header.base_offset] = data[header.position : header.position + header.size]
    return [found[base] for base in sorted(found)]


class World:
    """Three replicas of a log, and the buckets east and west below `root`. `local_start`: where
    the replicas' logs begin; older records are in buckets alone."""

    def __init__(
        self,
        root: Path,
        *,
        local_start: int = 0,
        uploader: Copy | None = None,
        copies: Sequence[Copy] = (),
        east: Sequence[int] = EAST_CUTS,
        west: Sequence[int] = WEST_CUTS,
    ) -> None:
        self.root = root
        copies = list(copies) or [filled(TIERED) for _ in range(3)]
        self.live: dict[str, list[SegmentEntry]] = {"east": [], "west": []}
        for bucket, cuts in (("east", east), ("west", west)):
            source = uploader if uploader is not None and bucket == "east" else copies[0]
            self.fill(bucket, source, cuts)
        for copy in copies if local_start else ():
            copy.flush()
            copy.log.remove_segments_before(copy.log.index_of(Offset(local_start)))
        self.cluster = FakeCluster(*copies)
        self.local_start = copies[0].log.start_offset
        self.retired: set[str] = set()
        """Names of objects that are live no more when the leader is asked again."""
        self.looks = 0
        self.grown_to = 0
        """Where the bucket west ends when the leader is asked again; 0: where it did."""

    def fill(self, bucket: str, source: Copy, cuts: Sequence[int]) -> None:
        (self.root / bucket).mkdir(parents=True)
        (self.root / bucket / MARK).touch()
        for start, end in pairwise(cuts):
            self.put(bucket, batches_of(source, start, end), start, end)

    def put(self, bucket: str, batches: Sequence[bytes], start: int, end: int) -> SegmentEntry:
        writer = SegmentWriter(Offset(start), Offset(end))
        writer.add(b"".join(batches))
        done = writer.finish(f"c/t/0/{start:020d}-1-{len(self.live[bucket]):016x}.segment")
        path = self.root / bucket / done.entry.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(done.parts))
        self.live[bucket].append(done.entry)
        return done.entry

    def path(self, bucket: str, number: int) -> Path:
        """The file of an object."""
        return self.root / bucket / self.live[bucket][number].name

    def change(
        self, bucket: str, number: int, batch: int, alter: Callable[[bytearray], None]
    ) -> BatchHeader:
        """Change one batch of an object in its bucket."""
        path, entry = self.path(bucket, number), self.live[bucket][number]
        data = bytearray(path.read_bytes())
        header = list(iterate_headers(data[: entry.data_bytes]))[batch]
        place = slice(header.position, header.position + header.size)
        changed = data[place]
        alter(changed)
        data[place] = changed
        path.write_bytes(data)
        return header

    def look(self, places: Collection[Place]) -> Tiers:
        """What the leader says."""
        self.looks += 1
        gone = self.retired if self.looks > 1 else set()
        live = {
            bucket: tuple(one for one in entries if one.name not in gone)
            for bucket, entries in self.live.items()
            if entries
        }
        if self.looks > 1 and self.grown_to:
            last = live["west"][-1]
            live["west"] += (msgspec.structs.replace(last, end_offset=Offset(self.grown_to)),)
        return Tiers({PLACE: TierView(UUID(int=1), 0, self.local_start, live)}, {})

    def options(self, *buckets: str) -> BucketOptions:
        places = (f"{one}=file://{self.root}/{one}" for one in buckets or sorted(self.live))
        return BucketOptions("bucket", tuple(places))

    def audit(self, *buckets: str, range_bytes: int = 300) -> AuditResult:
        return self.cluster.audit(
            range_bytes=range_bytes, buckets=self.options(*buckets), look=self.look
        )


def only(result: AuditResult) -> Finding:
    """The one finding."""
    assert result.verdict is Verdict.DIFFERENT, (result.findings, result.not_compared)
    assert len(result.findings) == 1, [one.text for one in result.findings]
    assert result.not_compared == []
    return result.findings[0]


def fork(batch: bytearray) -> None:
    """Another value in the last record, under a right checksum; of uncompressed batches."""
    batch[-2] ^= 1
    header = read_header(batch)
    assert header is not None
    seal(batch, header)


def flip(batch: bytearray) -> None:
    batch[-2] ^= 1
