"""Ranges of objects of all buckets: within a deadline, counted, and their failures noted.

Why:    trailers and chunks are read in the same way, and a store that neither answers nor fails
        must not hold a reader for ever.
Source: decision 0060."""

import asyncio
from typing import Protocol

from strandline.base.clock import Clock
from strandline.base.disk import Buffer
from strandline.tiered.objects.store import ObjectStore, StoreError
from strandline.tiered.reading.counters import ReadCounters
from strandline.tiered.reading.failures import Failures

RANGE_MS_MAX = 120_000
"""A range takes no longer, whatever the store's own deadline is."""


class StoreSource(Protocol):
    """The buckets of a broker: `tiered.objects.buckets`."""

    def store(self, bucket: str) -> ObjectStore:
        """The store of a bucket. Raises StoreError for an unknown one."""


class RangedStore:
    """See the module."""

    def __init__(self, buckets: StoreSource, clock: Clock, counters: ReadCounters) -> None:
        self._buckets = buckets
        self._clock = clock
        self.counters = counters
        self.failures = Failures(clock, counters)

    async def get(self, bucket: str, name: str, start: int, end: int) -> Buffer:
        """Bytes [start, end) of an object, unchecked. Raises StoreError, which has been noted."""
        counters = self.counters
        counters.requests[bucket] += 1
        begun_ms = self._clock.monotonic_ms()
        try:
            data = await self._get(bucket, name, start, end)
        except StoreError as error:
            self.failures.note(bucket, name, error)
            raise
        self.failures.note_answer(bucket)
        counters.fetched_bytes[bucket] += len(data)
        counters.fetch_ms[bucket] += self._clock.monotonic_ms() - begun_ms
        return data

    async def _get(self, bucket: str, name: str, start: int, end: int) -> Buffer:
        store = self._buckets.store(bucket)
        try:
            async with asyncio.timeout(RANGE_MS_MAX / 1000):
                data = await store.get_range(name, start, end)
        except TimeoutError:
            raise StoreError(f"no answer within {RANGE_MS_MAX // 1000} s") from None
        if len(data) != end - start:
            raise StoreError(f"{len(data)} bytes instead of {end - start}")
        return data
