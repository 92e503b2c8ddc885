"""A read-only copy in another cluster: it knows the partitions by one bucket alone.

Why:    what it serves must be what its source had at some moment, whatever the bucket does.
How:    a process of its own, with a clock, a loop and a disk, runs the product's views and reader:
        each round refreshes the views, and reads somewhere in each. What it serves is a fact.
Owns:   its process.
Source: decision 0061."""

import asyncio
import random

from strandline.model.ids import GroupId, Offset
from strandline.simulation.clients.clients import Client
from strandline.simulation.disk.disk import HostDisk, SimDisk
from strandline.simulation.invariants.bucket_facts import CopyRead, CopySeen
from strandline.simulation.invariants.facts import Subject
from strandline.simulation.world.clock import HostClock, SimClock
from strandline.simulation.world.cluster import SimCluster
from strandline.simulation.world.loop import SimLoop
from strandline.simulation.world.process import Process
from strandline.tiered.reading.ranges import RemotePartition
from strandline.tiered.reading.reader import RemoteReader
from strandline.tiered.reading.remote_read import RemoteRead
from strandline.tiered.replicas.source import ReplicaSource
from strandline.tiered.replicas.view import ReplicaView

ROUND_MS = (100, 400)
READ_BYTES = (200, 4_000, 100_000)
READ_TIMEOUT_MS = 2_000
CACHE_BYTES = 64 * 1024
CACHE_DIRECTORY = "/copy/tiered-cache"


class Copy(Client):
    """See the module."""

    def __init__(self, name: str, cluster: SimCluster, rng: random.Random) -> None:
        super().__init__(name, cluster, rng)
        self.copied_count = 0
        """Records that it served."""
        self._bucket = rng.choice(list(cluster.buckets.buckets))
        self._process = Process(self.scheduler, name)
        hardware = HostClock(self.scheduler)
        self._loop = SimLoop(self.scheduler, self._process, hardware)
        self._clock = SimClock(hardware, self._process)
        self._disk = SimDisk(HostDisk(self.scheduler, rng), self._process)

    def start(self) -> None:
        """See `Client`."""
        self._process.run_now(self._begin)

    def end(self) -> None:
        """End the process, once; an error in it is one of the product."""
        if not self._process.alive:
            return
        self._process.kill()
        self._loop.close()
        if self._loop.errors:
            self.cluster.checker.fail(f"NoUnexpectedError: {self.name}: {self._loop.errors[0]}")

    def _begin(self) -> None:
        self._loop.create_task(self._run())

    async def _run(self) -> None:
        buckets = self.cluster.buckets.open(self._process)
        source = ReplicaSource(
            lambda: buckets.store(self._bucket),
            bucket=self._bucket,
            cluster_id=self.cluster.cluster_id,
            clock=self._clock,
        )
        reader = RemoteReader(
            buckets=buckets,
            disk=self._disk,
            directory=CACHE_DIRECTORY,
            clock=self._clock,
            cache_bytes_max=CACHE_BYTES,
        )
        views = {
            group: source.open((topic_id, 0), lambda: None)
            for topic_id, group in self.cluster.topic_ids().items()
        }
        await reader.start()
        while not self.is_stopped:
            await source.refresh()
            for group, view in views.items():
                if view.is_ready and view.number is not None:
                    await self._look(group, view, reader)
            await asyncio.sleep(self.rng.randint(*ROUND_MS) / 1_000)

    async def _look(self, group: GroupId, view: ReplicaView, reader: RemoteReader) -> None:
        number, start, end = view.number, view.start_offset, view.high_watermark
        assert number is not None
        self.cluster.checker.bucket_fact(CopySeen(group, self._bucket, number, start, end))
        if start == end:
            return
        position = Offset(self.rng.randrange(start, end))
        partition = RemotePartition(group, view, (self._bucket,))
        max_bytes = self.rng.choice(READ_BYTES)
        read = reader.read(partition, position, max_bytes=max_bytes, end_offset=end)
        assert read.task is not None
        await asyncio.wait([read.task], timeout=READ_TIMEOUT_MS / 1_000)
        if read.is_over and not read.is_failed:
            self._report(group, position, end, read)
        else:
            read.drop()

    def _report(self, group: GroupId, position: Offset, end: Offset, read: RemoteRead) -> None:
        data = b"".join(one.file.pread(one.size_bytes, one.position) for one in read.slices)
        try:
            found = self.cluster.values.read(data)
        except ValueError as error:
            self.cluster.checker.fail(
                f"NoDamageServed: group {group}: {self.name}: {error}", Subject(group, position)
            )
            return
        records = [one for one in found if position <= one[0] < end]
        self.copied_count += len(records)
        self.cluster.checker.bucket_fact(CopyRead(group, self._bucket, position, records))
