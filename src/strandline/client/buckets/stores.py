"""The buckets that a process reads: ranges of objects, in the background.

Why:    stores are asked by coroutines, and a reader decodes what it has while more bytes come.
Owns:   one thread with an event loop, and the stores of this process.
Source: decision 0065."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, Thread

from strandline.base.disk import Buffer
from strandline.client.buckets.options import BucketOptions
from strandline.tiered.objects.credentials import CredentialsFile
from strandline.tiered.objects.limits import StoreLimits
from strandline.tiered.objects.opening import open_store
from strandline.tiered.objects.store import ObjectInfo, ObjectStore

REQUESTS_INFLIGHT_MAX = 8
"""Of which half are downloads."""

GetRange = Callable[[str, str, int, int], "Future[Buffer]"]
"""Called with bucket, name, start and end; the bytes [start, end) come later. The future raises
StoreError, ObjectAbsentError."""


class BucketStores:
    """See the module. Raises OperatorError if credentials cannot be read."""

    def __init__(self, options: BucketOptions, *, timeout_ms: int) -> None:
        limits = StoreLimits(requests_inflight_max=REQUESTS_INFLIGHT_MAX)
        credentials = CredentialsFile(options.credentials_file)
        self._stores: dict[str, ObjectStore] = {
            url.name: open_store(url, credentials=credentials, limits=limits, timeout_ms=timeout_ms)
            for url in options.urls
        }
        self._loop = asyncio.new_event_loop()
        Thread(target=self._loop.run_forever, name="buckets", daemon=True).start()

    def get_range(self, bucket: str, name: str, start: int, end: int) -> "Future[Buffer]":
        """See `GetRange`."""
        coming = self._stores[bucket].get_range(name, start, end)

        async def get() -> Buffer:
            return await coming

        return asyncio.run_coroutine_threadsafe(get(), self._loop)

    def find(self, bucket: str, name: str) -> "Future[ObjectInfo | None]":
        """The object, as a listing has it; None if the listing lacks it. The future raises
        StoreError."""

        async def find() -> ObjectInfo | None:
            async for one in self._stores[bucket].list(name):
                if one.name == name:
                    return one
            return None

        return asyncio.run_coroutine_threadsafe(find(), self._loop)


_STORES: dict[tuple[BucketOptions, int], BucketStores] = {}
_LOCK = Lock()
"""Threads of one process may ask for the same stores at once."""


def stores_of(options: BucketOptions, *, timeout_ms: int) -> BucketStores:
    """This process's stores; their connections stay open from task to task."""
    key = (options, timeout_ms)
    with _LOCK:
        if key not in _STORES:
            _STORES[key] = BucketStores(options, timeout_ms=timeout_ms)
        return _STORES[key]
