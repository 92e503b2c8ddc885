"""Objects of one log in buckets that fail on demand, and a reader of them.

Why:    a reader must be right whatever a bucket, the cache's disk or a restart does to it.
How:    the log is a list of batches. `put` cuts it into objects for one bucket; each bucket may cut
        it elsewhere. Chunks are small, so that a few kB have many of them."""

import asyncio
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
from fastcrc import crc32
from tests.storage.storage_world import ManualClock

from strandline.model.ids import Offset
from strandline.records.batch import iterate_headers
from strandline.records.record import Record, build_batch
from strandline.storage.disk.real_disk import RealDisk
from strandline.tiered.objects.store import ObjectAbsentError, StoreError
from strandline.tiered.reading.ranges import RemotePartition
from strandline.tiered.reading.reader import RemoteReader
from strandline.tiered.reading.remote_read import RemoteRead
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.writer import SegmentWriter

CHUNK_BYTES = 1_024
CACHE_BYTES_MAX = 1 << 20


class FaultyStore:
    """A bucket in memory. `fault`: called with the name and range before each answer; it may raise,
    or return a function that changes the bytes. `gate`: answers wait until it is set."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.calls: list[tuple[str, int, int]] = []
        self.fault: Callable[[str, int, int], Callable[[bytes], bytes] | None] = lambda *_: None
        self.gate = asyncio.Event()
        self.gate.set()

    async def get_range(self, name: str, start: int, end: int) -> bytes:
        self.calls.append((name, start, end))
        await asyncio.sleep(0)
        await self.gate.wait()
        change = self.fault(name, start, end)
        if name not in self.objects:
            raise ObjectAbsentError(name)
        data = self.objects[name][start:end]
        if len(data) != end - start:
            raise StoreError("the range is not satisfiable")
        return data if change is None else change(data)


def fail(*_: object) -> None:
    """A fault: the bucket does not answer."""
    raise StoreError("503: slow down")


def absent(*_: object) -> None:
    """A fault: the bucket says that it has no such object."""
    raise ObjectAbsentError("404")


def flip(*_: object) -> Callable[[bytes], bytes]:
    """A fault: one bit is another."""
    return lambda data: bytes([data[0] ^ 1]) + data[1:]


def halve(*_: object) -> Callable[[bytes], bytes]:
    """A fault: half of a body."""
    return lambda data: data[: len(data) // 2]


@dataclass
class Buckets:
    """All buckets, and what the log says of each: a `TieredRange` as well."""

    stores: dict[str, FaultyStore] = field(default_factory=dict)
    entries: dict[str, list[SegmentEntry]] = field(default_factory=dict)

    def store(self, bucket: str) -> FaultyStore:
        return self.stores[bucket]

    def live(self, bucket: str) -> Sequence[SegmentEntry]:
        return self.entries.get(bucket, ())

    def put(
        self,
        bucket: str,
        batches: Sequence[bytes],
        *,
        end: int | None = None,
        name: str = "",
        chunk_bytes: int = CHUNK_BYTES,
    ) -> SegmentEntry:
        """One more object behind the last one. `end`: where it ends, if the last batches of its
        range have been compacted away."""
        store = self.stores.setdefault(bucket, FaultyStore())
        entries = self.entries.setdefault(bucket, [])
        headers = [next(iterate_headers(one)) for one in batches]
        base = entries[-1].end_offset if entries else headers[0].base_offset
        name = name or f"c/t/0/{base:020d}-1-{len(store.objects):016x}.segment"
        stored, entry = make_object(
            batches, base, end or headers[-1].next_offset, name, chunk_bytes
        )
        store.objects[name] = stored
        entries.append(entry)
        return entry


def make_object(
    batches: Sequence[bytes], base: int, end: int, name: str, chunk_bytes: int
) -> tuple[bytes, SegmentEntry]:
    """An object with chunks of that size, and every other batch in its index."""
    data = b"".join(batches)
    headers = list(iterate_headers(data))
    highest = [-1]
    for header in headers:
        highest.append(max(highest[-1], header.max_timestamp))
    writer = SegmentWriter(Offset(base), headers[-1].next_offset if headers else Offset(end))
    for one in batches or [batch(base, count=end - base)]:
        writer.add(one)
    made = writer.finish(name)
    trailer = replace(
        made.trailer,
        end_offset=end,
        data_bytes=len(data),
        offsets=array("I", [one.base_offset - base for one in headers[::2]]),
        positions=array("I", [one.position for one in headers[::2]]),
        timestamps=array("q", highest[:-1][::2]),
        chunk_bytes=chunk_bytes,
        chunk_crcs=array(
            "I",
            [crc32.iscsi(data[at : at + chunk_bytes]) for at in range(0, len(data), chunk_bytes)],
        ),
    )
    encoded = trailer.encode()
    entry = msgspec.structs.replace(
        made.entry,
        end_offset=end,
        data_bytes=len(data),
        size_bytes=len(data) + len(encoded),
        trailer_crc=crc32.iscsi(encoded),
        digest=trailer.digest(),
    )
    return data + encoded, entry


def batch(
    offset: int, *, count: int = 1, value_bytes: int = 100, time: int | Sequence[int] = 0
) -> bytes:
    """One batch of `count` records; `time`: of the first, each later one 1 ms later; or of each."""
    times = [time + at for at in range(count)] if isinstance(time, int) else time
    records = [
        Record(at, times[at], None, bytes([(offset + at) % 256]) * value_bytes)
        for at in range(count)
    ]
    return bytes(build_batch(records, base_offset=offset, epoch=1))


def batches(count: int, *, base: int = 0, value_bytes: int = 100) -> list[bytes]:
    """Batches of one record each, 10 ms apart."""
    return [
        batch(base + at, value_bytes=value_bytes, time=1_000 + 10 * (base + at))
        for at in range(count)
    ]


class ReadWorld:
    """A reader of these buckets, whose cache is below `directory`."""

    def __init__(
        self,
        directory: Path,
        buckets: Buckets,
        *,
        order: Iterable[str] = (),
        cache_bytes_max: int = CACHE_BYTES_MAX,
        clock: ManualClock | None = None,
    ) -> None:
        self.buckets = buckets
        self.clock = clock or ManualClock()
        self.directory = directory / "cache"
        self.cache_bytes_max = cache_bytes_max
        self.partition = RemotePartition("t-0", buckets, tuple(order) or tuple(buckets.stores))
        self.reader = self._reader()

    def _reader(self) -> RemoteReader:
        return RemoteReader(
            buckets=self.buckets,
            disk=RealDisk(lambda callback: None),
            directory=str(self.directory),
            clock=self.clock,
            cache_bytes_max=self.cache_bytes_max,
        )

    async def restart(self) -> None:
        """Another process on the same directory."""
        self.reader.stop()
        await self.reader.cache.stop()
        self.reader = self._reader()
        await self.reader.start()

    def begin(self, offset: int, **limits: int) -> RemoteRead:
        """Begin a read up to the end of all entries."""
        limits.setdefault("max_bytes", 1 << 20)
        end = max(one.end_offset for each in self.buckets.entries.values() for one in each)
        limits.setdefault("end_offset", end)
        return self.reader.read(self.partition, Offset(offset), **limits)  # type: ignore[arg-type]

    async def read(self, offset: int, **limits: int) -> RemoteRead:
        """Read to the end of a read."""
        read = self.begin(offset, **limits)
        assert read.task is not None
        await read.task
        assert read.is_over
        return read

    async def settle(self) -> None:
        """Let downloads that are under way end."""
        while len(self.reader.downloads):
            await asyncio.sleep(0)


def bytes_of(read: RemoteRead) -> bytes:
    """What a client gets."""
    data = b"".join([one.file.pread(one.size_bytes, one.position) for one in read.slices])
    assert len(data) == read.size_bytes
    return data


def offsets_of(read: RemoteRead) -> list[int]:
    """The base offsets of the batches of a read, which are whole."""
    data = bytes_of(read)
    headers = list(iterate_headers(data))
    assert sum(header.size for header in headers) == len(data)
    return [header.base_offset for header in headers]
