"""Old records, read from a bucket: the first byte, a long read, and what other consumers notice.

Why:    history that is slow to read is history that nobody reads; and one backfill must not slow
        the consumers of new records down.
How:    a broker with one bucket, a directory or an S3 server (moto, where its command is
        installed), and a topic of which its disk keeps the last segment. The same objects are read
        by the store's own client, in the same ranges of 8 MiB, two at a time. CPU seconds per GB
        compare better than seconds: the machine may do other things.
            The first byte is measured in this process, over a store that answers after `DELAY_S`:
        the excess over whole round trips is ours.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.clusters import Cluster, strandline
from bench.load import cpu_seconds
from bench.paced import PacedProducer, create_topic
from strandline.config.bucket_urls import parse_bucket
from strandline.model.ids import Offset
from strandline.records.record import Record, build_batch
from strandline.storage.disk.real_disk import RealDisk
from strandline.tiered.objects.opening import open_store
from strandline.tiered.objects.store import ObjectStore
from strandline.tiered.reading.ranges import RemotePartition
from strandline.tiered.reading.reader import RemoteReader
from strandline.tiered.reading.worker import DiskThreads
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.writer import SegmentWriter

MIB = 1 << 20
SEGMENT_BYTES = 64 * MIB
CACHE_BYTES = 4 * SEGMENT_BYTES
"""Half of the history: each read of all of it is cold, one of the last part is not."""
OBJECTS = 8
VALUE_BYTES = 100_000
RANGE_BYTES = 8 * MIB
IN_FLIGHT = 2
DELAY_S = 0.05
FIRST_BYTES = 20
RATE, PACED_S, WARM_UP_S = 300, 10, 2
TIMEOUT_S = 180
S3_SERVER = Path(sys.executable).parent / "moto_server"
S3_PORT = 21_955
Say = Callable[..., None]


# ---- the first byte ------------------------------------------------------------------------------


class DelayedStore:
    """A store of one object that answers after `DELAY_S`."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.calls = 0

    async def get_range(self, name: str, start: int, end: int) -> bytes:
        """See `ObjectStore`."""
        self.calls += 1
        await asyncio.sleep(DELAY_S)
        return self._data[start:end]


class OneObject:
    """The bucket, and what a log says of it."""

    def __init__(self) -> None:
        batches = [
            bytes(build_batch([Record(0, at, None, os.urandom(15_000))], base_offset=at, epoch=1))
            for at in range(1_000)
        ]
        writer = SegmentWriter(Offset(0), Offset(len(batches)))
        for one in batches:
            writer.add(one)
        made = writer.finish("c/t/0/first")
        self.entries: list[SegmentEntry] = [made.entry]
        self.held = DelayedStore(b"".join(bytes(part) for part in made.parts))

    def store(self, bucket: str) -> ObjectStore:
        """See `StoreSource`."""
        return self.held  # type: ignore[return-value]

    def live(self, bucket: str) -> list[SegmentEntry]:
        """See `TieredRange`."""
        return self.entries


class _Clock:
    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


def _end(came: asyncio.Future[None]) -> None:
    if not came.done():
        came.set_result(None)


async def first_bytes(work: Path) -> list[float]:
    """Milliseconds above the round trips of cold reads, each with caches of its own."""
    bucket = OneObject()
    found = []
    for at in range(FIRST_BYTES):
        reader = RemoteReader(
            buckets=bucket,
            disk=RealDisk(lambda callback: None),
            directory=str(work / f"cache-{at}"),
            clock=_Clock(),  # type: ignore[arg-type]
            cache_bytes_max=1 << 30,
        )
        reader.work.worker = DiskThreads()
        await reader.start()
        bucket.held.calls = 0
        partition = RemotePartition("t-0", bucket, ("b",))
        begun = time.monotonic()
        read = reader.read(
            partition, Offset(37 * at), max_bytes=MIB, min_bytes=1, end_offset=Offset(1_000)
        )
        assert read.task is not None
        while not read.slices:
            came: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            read.watch(partial(_end, came))
            await came
        read.slices[0].file.pread(1, read.slices[0].position)
        took = time.monotonic() - begun
        found.append(1_000 * (took - 2 * DELAY_S))
        assert bucket.held.calls == 2, bucket.held.calls
        reader.stop()
    return sorted(found)


# ---- a long read ---------------------------------------------------------------------------------


@contextmanager
def s3_server() -> Iterator[str]:
    """A local S3 server with the bucket `cold`; its URL as `[tiered] buckets` has it."""
    import boto3

    os.environ.update(AWS_ACCESS_KEY_ID="bench", AWS_SECRET_ACCESS_KEY="bench")
    address = f"http://127.0.0.1:{S3_PORT}"
    server = subprocess.Popen(
        [S3_SERVER, "-p", str(S3_PORT)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        client = boto3.client("s3", endpoint_url=address, region_name="us-east-1")
        for _ in range(100):
            try:
                client.create_bucket(Bucket="cold-bucket")
                break
            except Exception:
                time.sleep(0.1)
        yield f"s3://cold-bucket/bench?region=us-east-1&endpoint={address}"
    finally:
        server.terminate()
        server.wait()


def fill(cluster: Cluster, topic: str) -> int:
    """Records until there are enough objects; how many."""
    value = os.urandom(VALUE_BYTES)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 20})
    count = (OBJECTS + 1) * SEGMENT_BYTES // VALUE_BYTES
    for _ in range(count):
        while True:
            try:
                producer.produce(topic, value, partition=0)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(TIMEOUT_S) == 0
    return count


def local_start(cluster: Cluster, topic: str) -> int:
    """Where the log on the disk begins."""
    logs = cluster.directory / "broker-1" / "data" / "logs"
    return min(int(one.name.split("-")[0]) for one in logs.glob(f"{topic}-0.*/*.log"))


def wait_local_start(cluster: Cluster, topic: str, above: int) -> None:
    """Until the disk has let the old records go."""
    deadline = time.monotonic() + TIMEOUT_S
    while local_start(cluster, topic) < above:
        assert time.monotonic() < deadline, "the broker uploads too slowly"
        time.sleep(0.1)


def consume(bootstrap: str, topic: str, start: int, end: int) -> int:
    """Read [start, end) of partition 0; the bytes of its values."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "cold",
            "enable.auto.commit": False,
            "fetch.message.max.bytes": RANGE_BYTES,
            "queued.max.messages.kbytes": 128 * 1024,
        }
    )
    consumer.assign([TopicPartition(topic, 0, start)])
    size = 0
    try:
        while start < end:
            for message in consumer.consume(100, 0.5):
                assert message.error() is None, message.error()
                start += 1
                size += len(message.value() or b"")
    finally:
        consumer.close()
    return size


async def read_objects(url: str) -> int:
    """Read all segments' objects with the store's own client; how many bytes."""
    store = open_store(parse_bucket(f"east={url}"))
    objects = [one async for one in store.list("") if one.name.endswith(".segment")]
    ranges = [
        (one.name, at, min(at + RANGE_BYTES, one.size_bytes))
        for one in objects
        for at in range(0, one.size_bytes, RANGE_BYTES)
    ]

    async def go_on(mine: list[tuple[str, int, int]]) -> None:
        for one in mine:
            await store.get_range(*one)

    await asyncio.gather(*(go_on(ranges[at::IN_FLIGHT]) for at in range(IN_FLIGHT)))
    return sum(one.size_bytes for one in objects)


def long_read(work: Path, kind: str, url: str, say: Say) -> None:
    """CPU seconds per GB: the store's own client; a first scan; a second one of a part, which
    writes it to the disk; one out of that; a local read."""
    options = (
        "--set",
        f"tiered.buckets=east={url}",
        "--set",
        "tiered.check_interval_ms=1000",
        "--set",
        "storage.retention_check_interval_ms=1000",
        "--set",
        f"tiered.cache_bytes_max={CACHE_BYTES}",
    )
    configs = {
        "remote.storage.enable": "true",
        "segment.bytes": str(SEGMENT_BYTES),
        "local.retention.bytes": str(SEGMENT_BYTES),
    }
    with strandline(work / kind, regions="east=1", options=options) as cluster:
        create_topic(cluster.bootstrap, "cold", partitions=1, replicas=1, configs=configs)
        create_topic(cluster.bootstrap, "paced", partitions=1, replicas=1)
        count = fill(cluster, "cold")
        wait_local_start(cluster, "cold", count * (OBJECTS - 1) // (OBJECTS + 1))
        pids = list(cluster.pids.values())
        start = local_start(cluster, "cold")
        usage, begun = os.times(), time.monotonic()
        size = asyncio.run(read_objects(url))
        after = os.times()
        cpu_s = after.user + after.system - usage.user - usage.system
        _say_rate(say, kind, "the store's client", size, time.monotonic() - begun, cpu_s)
        # The first consumer of all makes the broker create the partitions of committed offsets.
        consume(cluster.bootstrap, "cold", count - 1, count)
        tail = start * 7 // 8
        for what, first, last in (
            ("cold", 0, start),
            ("a second time", tail, start),
            ("cached", tail, start),
            ("local", start, count),
        ):
            before, begun = cpu_seconds(pids), time.monotonic()
            size = consume(cluster.bootstrap, "cold", first, last)
            seconds = time.monotonic() - begun
            _say_rate(say, kind, what, size, seconds, cpu_seconds(pids) - before)
        _beside(cluster, kind, start, say)


def _say_rate(say: Say, kind: str, what: str, size: int, seconds: float, cpu_s: float) -> None:
    say(
        bucket=kind,
        read=what,
        mb=round(size / 1e6),
        mb_per_s=round(size / 1e6 / seconds),
        cpu_s_per_gb=round(cpu_s / (size / 1e9), 2),
    )


def _beside(cluster: Cluster, kind: str, end: int, say: Say) -> None:
    """Latencies of a producer with acks=1, alone and beside cold reads without a pause: the event
    loop serves both."""
    say(bucket=kind, beside="nothing", **_latencies(cluster))
    reads = subprocess.Popen(
        [sys.executable, "-m", "bench.cold", cluster.bootstrap, str(end)],
        stdout=subprocess.DEVNULL,
    )
    try:
        say(bucket=kind, beside="reads of old records", **_latencies(cluster))
    finally:
        reads.terminate()
        reads.wait()


def _latencies(cluster: Cluster) -> dict[str, float]:
    producer = PacedProducer(cluster.bootstrap, "paced", partitions=1, acks="1")
    producer.run(rate=RATE, seconds=WARM_UP_S)
    producer.deliveries.latencies_ms.clear()
    producer.run(rate=RATE, seconds=PACED_S)
    producer.close()
    found = producer.deliveries
    assert not found.failed
    return {"p50_ms": found.percentile_ms(50), "p99_ms": found.percentile_ms(99)}


def run(work: Path, say: Say) -> None:
    """All figures."""
    with tempfile.TemporaryDirectory() as caches:
        excess = asyncio.run(first_bytes(Path(caches)))
    say(
        read="first byte",
        round_trips=2,
        excess_ms_p50=round(excess[len(excess) // 2], 1),
        excess_ms_max=round(excess[-1], 1),
    )
    bucket = work / "bucket"
    bucket.mkdir(parents=True)
    long_read(work, "directory", f"file://{bucket}", say)
    if S3_SERVER.exists():
        with s3_server() as url:
            long_read(work, "s3", url, say)


def main() -> None:
    """Read old records again and again, in a process of its own: `BOOTSTRAP END`."""
    bootstrap, end = sys.argv[1:]
    while True:
        consume(bootstrap, "cold", 0, int(end))


if __name__ == "__main__":
    main()
