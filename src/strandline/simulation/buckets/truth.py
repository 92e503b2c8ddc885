"""A bucket as it is in truth: reads without time, faults or doubt.

Why:    what brokers read is judged by what is there.
How:    the product's own readers of exports run over it, and never wait.
Owns:   nothing.
Source: decision 0061."""

from collections.abc import AsyncIterator, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from strandline.base.disk import Buffer
from strandline.simulation.buckets.bucket import SimBucket
from strandline.tiered.objects.store import (
    ObjectAbsentError,
    ObjectExistsError,
    ObjectInfo,
)

_T = TypeVar("_T")


@dataclass(slots=True)
class TrueStore:
    """See the module; an `ObjectStore`."""

    bucket: SimBucket

    async def put(self, name: str, parts: Sequence[Buffer]) -> None:
        """See `ObjectStore.put`."""
        self.bucket.put(name, b"".join(bytes(one) for one in parts))

    async def create(self, name: str, data: bytes) -> None:
        """See `ObjectStore.create`."""
        if self.bucket.get(name) not in (None, data):
            raise ObjectExistsError(name)
        self.bucket.put(name, data)

    async def get(self, name: str) -> bytes:
        """See `ObjectStore.get`."""
        data = self.bucket.get(name)
        if data is None:
            raise ObjectAbsentError(name)
        return data

    async def get_range(self, name: str, start: int, end: int) -> bytes:
        """See `ObjectStore.get_range`."""
        return (await self.get(name))[start:end]

    async def list(self, prefix: str) -> AsyncIterator[ObjectInfo]:
        """See `ObjectStore.list`."""
        for one in self.bucket.present(prefix):
            yield one

    async def delete(self, names: Sequence[str]) -> None:
        """See `ObjectStore.delete`."""
        for name in names:
            self.bucket.delete(name)


def run_now(work: Coroutine[Any, Any, _T]) -> _T:
    """The result of a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    work.close()
    raise AssertionError("it waits for something")
