"""Tries one bucket after the other until one gives usable bytes.

Why:    another region's bucket costs more to read, and a bucket that fails must not fail a read
        while another one has the records.
Source: decision 0060."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from strandline.model.ids import Offset
from strandline.tiered.objects.store import StoreError
from strandline.tiered.reading.counters import ReadCounters
from strandline.tiered.reading.failures import Failures, UnreadableError
from strandline.tiered.reading.object_reader import ObjectReader
from strandline.tiered.reading.ranges import RemotePartition, entry_at
from strandline.tiered.segments.entry import SegmentEntry

R = TypeVar("R")
ReadEntry = Callable[[str, SegmentEntry], Awaitable[R]]
"""(bucket, entry) -> what it read. Raises StoreError, OSError."""


class BucketOrder:
    """See the module."""

    def __init__(self, objects: ObjectReader, failures: Failures, counters: ReadCounters) -> None:
        self._objects = objects
        self._failures = failures
        self._counters = counters

    async def first(self, partition: RemotePartition, offset: Offset, read: ReadEntry[R]) -> R:
        """What `read` returns for the first bucket for which it raises no error. Raises
        UnreadableError if there is none."""
        tried: list[str] = []
        for bucket in partition.buckets:
            names: set[str] = set()
            while True:
                entry = entry_at(partition.source.live(bucket), offset)
                if entry is None or entry.name in names:
                    break
                names.add(entry.name)  # Another may take its place while it is read.
                if not self._may_read(bucket, entry, offset):
                    tried.append(f"{bucket} is left alone for a while")
                    break
                self._counters.fallbacks += bool(tried)
                try:
                    return await read(bucket, entry)
                except (StoreError, OSError) as error:
                    tried.append(f"{bucket}: {error}")
        reasons = "; ".join(tried) or f"none of the buckets {', '.join(partition.buckets)} has it"
        raise UnreadableError(f"offset {offset} cannot be read now: {reasons}")

    def _may_read(self, bucket: str, entry: SegmentEntry, offset: Offset) -> bool:
        """Whether the bucket may be asked, or need not be."""
        may_ask = self._failures.may_ask(bucket, entry.name)
        return may_ask or self._objects.has(bucket, entry, offset)
