"""Replicas whose digests are compared: logs on disks in memory, and ways to change their bytes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from tests.storage.storage_world import ForgetfulDisk, ManualClock

from strandline.model.ids import Epoch, Offset
from strandline.records.batch import HEADER_BYTES, read_header, seal
from strandline.records.marker import build_epoch_marker
from strandline.records.record import Record, build_batch
from strandline.storage.config import LogConfig
from strandline.storage.digests.contents import digest_contents
from strandline.storage.digests.latest import KeyShare, digest_latest
from strandline.storage.digests.ranges import Digested, DigestKind, OffsetRange
from strandline.storage.log.log import Log

DIRECTORY = "/data/topic-0.1"
CONFIG = LogConfig(
    segment_bytes=900, index_interval_bytes=200, preallocate=False, delete=False, segment_ms=1_000
)
COMPACTED = replace(
    CONFIG, compacted=True, delete_retention_ms=1_000, min_cleanable_dirty_ratio=0.0
)
ALL_BYTES = 1 << 30
Pair = tuple[bytes | None, bytes | None]


class Copy:
    """One replica's log."""

    def __init__(self, config: LogConfig = CONFIG) -> None:
        self.disk = ForgetfulDisk()
        self.disk.make_directories("/data")
        self.clock = ManualClock()
        self.log = Log.open(self.disk, DIRECTORY, config=config, clock=self.clock)

    def append(self, pairs: Sequence[Pair], *, epoch: int = 1, codec: int = 0) -> None:
        records = [
            Record(n, 1_000 + n, key, value, (("h", b"x"), ("n", None)))
            for n, (key, value) in enumerate(pairs)
        ]
        self.put(build_batch(records, base_offset=self.log.end_offset, epoch=epoch, codec=codec))

    def mark(self, epoch: int) -> None:
        self.put(bytearray(build_epoch_marker(self.log.end_offset, Epoch(epoch), 5)))

    def put(self, batch: bytearray) -> None:
        header = read_header(batch)
        assert header is not None
        self.log.append([batch], [header])

    def flush(self) -> None:
        self.log.flush_soon(lambda _: None)
        self.disk.run()

    def compact(self) -> None:
        """Compact all closed segments."""
        self.flush()
        while self.log.compact(self.log.end_offset, outlived=self.log.end_offset):
            self.disk.run()

    def digest(
        self,
        *bounds: int,
        kind: DigestKind = DigestKind.BYTES,
        bytes_max: int = ALL_BYTES,
        first_markers: bool = False,
        evicts: bool = False,
        pace: Callable[[int], bool] = lambda _: True,
    ) -> Digested:
        """Of the ranges between these bounds."""
        ranges = ranges_of(*bounds, first_markers=first_markers)
        parts = self.log.parts.find(ranges[0].start, ranges[-1].end)
        return digest_contents(
            parts, ranges, kind=kind, bytes_max=bytes_max, pace=pace, evicts=evicts
        )

    def latest(
        self, *bounds: int, share: KeyShare | None = None, keys_max: int = 1_000
    ) -> Digested:
        ranges = ranges_of(*bounds, first_markers=False)
        parts = self.log.parts.find(ranges[0].start, ranges[-1].end)
        return digest_latest(
            parts, ranges, share=share or KeyShare(), keys_max=keys_max, pace=lambda _: True
        )

    def overwrite(self, offset: int, change: Callable[[bytearray], None]) -> None:
        """Change the stored bytes of the batch that begins at the offset."""
        for part in self.log.parts.find(Offset(offset), Offset(offset + 1)):
            position = part.place.position
            while position < part.end:
                header = read_header(part.file.pread(part.end - position, position))
                assert header is not None
                if header.base_offset == offset and not header.is_marker:
                    batch = bytearray(part.file.pread(header.size, position))
                    change(batch)
                    part.file.pwrite([batch], position)
                    return
                position += header.size
        raise AssertionError(f"no batch begins at {offset}")


def ranges_of(*bounds: int, first_markers: bool) -> list[OffsetRange]:
    return [
        OffsetRange(Offset(start), Offset(end), first_markers=bool(at) or first_markers)
        for at, (start, end) in enumerate(pairwise(bounds))
    ]


def filled(config: LogConfig = CONFIG) -> Copy:
    """Twelve batches of two records, in epochs 1 and 2, over several segments."""
    copy = Copy(config)
    copy.mark(1)
    for number in range(12):
        if number == 6:
            copy.mark(2)
        key = b"k%d" % (number % 3)
        copy.append(
            [(key, b"v%d" % number * 10), (b"own%d" % number, b"w" * 20)],
            epoch=1 + number // 6,
            codec=number % 5,
        )
    return copy


def flip(batch: bytearray) -> None:
    batch[HEADER_BYTES + 10] ^= 1


def fork(batch: bytearray) -> None:
    """Another record under a right checksum."""
    flip(batch)
    header = read_header(batch)
    assert header is not None
    seal(batch, header)


def fork_epoch(batch: bytearray) -> None:
    batch[15] += 1
