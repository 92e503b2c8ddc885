"""Trailers of objects, in memory: fetched once for all readers, a bounded number of bytes.

Why:    a reader needs an object's trailer before any of its records; at about 1 % of the data it
        is worth keeping.
How:    unknown --> one download that all askers share --> kept until others are used more
        A trailer is checked against the checksum in the log.
Owns:   trailers, and downloads that outlive those who asked.
Source: decision 0060."""

import asyncio
from collections import OrderedDict
from dataclasses import replace

from strandline.base.disk import Buffer
from strandline.tiered.objects.store import StoreError
from strandline.tiered.reading.failures import WrongBytesError
from strandline.tiered.reading.ranged_store import RangedStore
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.trailer import Trailer, TrailerError

TRAILER_BYTES_MAX = 64 << 20
"""Of all trailers, as stored; in memory they take about as much."""


class Trailers:
    """See the module."""

    def __init__(self, store: RangedStore, *, bytes_max: int = TRAILER_BYTES_MAX) -> None:
        self._store = store
        self._bytes_max = bytes_max
        self._kept: OrderedDict[tuple[str, str], tuple[Trailer, int]] = OrderedDict()
        """{(bucket, name): (the trailer, its bytes)}, least recently used first."""
        self._size_bytes = 0
        self._coming: dict[tuple[str, str], asyncio.Task[Trailer | StoreError]] = {}

    def get_nowait(self, bucket: str, entry: SegmentEntry) -> Trailer | None:
        """The trailer if it is here."""
        found = self._kept.get((bucket, entry.name))
        if found is None:
            return None
        self._kept.move_to_end((bucket, entry.name))
        return found[0]

    async def get(self, bucket: str, entry: SegmentEntry) -> Trailer:
        """The trailer. Raises StoreError."""
        found = self.get_nowait(bucket, entry)
        if found is not None:
            return found
        answer = await asyncio.shield(self.start(bucket, entry))
        if isinstance(answer, StoreError):
            raise answer
        return answer

    def start(self, bucket: str, entry: SegmentEntry) -> asyncio.Task[Trailer | StoreError]:
        """Have the trailer come; the download, which others may share."""
        place = bucket, entry.name
        task = self._coming.get(place)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._fetch(bucket, entry))
            self._coming[place] = task
            task.add_done_callback(lambda _: self._coming.pop(place, None))
        return task

    def stop(self) -> None:
        """End the downloads."""
        for task in list(self._coming.values()):
            task.cancel()

    async def _fetch(self, bucket: str, entry: SegmentEntry) -> Trailer | StoreError:
        def check(data: Buffer) -> Trailer:
            trailer = Trailer.parse(data, crc=entry.trailer_crc)
            if trailer.data_bytes != entry.data_bytes:
                raise TrailerError(f"for {trailer.data_bytes} bytes of data, not of this object")
            return replace(trailer, producers=())  # Readers need none of them.

        try:
            data = await self._store.get(bucket, entry.name, entry.data_bytes, entry.size_bytes)
            try:
                trailer = check(data)
            except TrailerError as error:
                wrong = WrongBytesError(str(error))
                self._store.failures.note(bucket, entry.name, wrong)
                return wrong
        except StoreError as error:
            return error
        self._keep(bucket, entry, trailer)
        return trailer

    def _keep(self, bucket: str, entry: SegmentEntry, trailer: Trailer) -> None:
        size_bytes = entry.size_bytes - entry.data_bytes
        self._kept[bucket, entry.name] = trailer, size_bytes
        self._size_bytes += size_bytes
        while self._size_bytes > self._bytes_max and len(self._kept) > 1:
            _, (_, gone_bytes) = self._kept.popitem(last=False)
            self._size_bytes -= gone_bytes
