"""One bucket: deadlines, limits, and what an answer of the store proves.

Why:    stores misreport writes: an applied put is answered with 503, a client retries and is told
        that its own object is in its way, a 409 means that nothing was stored. And a bucket that is
        gone answers like one without the object.
How:    After anything but success a write is read back and compared. An object is absent only if a
        listing, which fails where the bucket is gone, lacks it too. Large objects go up in parts;
        an upload ends when no part makes progress.
Owns:   the counts of its requests; nothing else that outlives a call.
Source: decision 0058; reference 2.3."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from typing import TypeVar

from strandline.base.disk import Buffer
from strandline.tiered.objects.backend import (
    PART_BYTES,
    Backend,
    NotFoundAnswerError,
    TakenAnswerError,
)
from strandline.tiered.objects.limits import MIB, StoreLimits
from strandline.tiered.objects.store import (
    ObjectAbsentError,
    ObjectExistsError,
    ObjectInfo,
    StoreError,
)
from strandline.tiered.objects.traffic import Traffic

PARTS_INFLIGHT_MAX = 2
"""Parts of a large object on their way at one time."""
GET_BYTES_MAX = 64 * MIB
"""The largest object that is read whole."""
COPIED_PER_TIMEOUT_BYTES = 256 * MIB
"""A copy inside the store has one more timeout for each of these."""
DELETES_MAX = 1_000
"""Objects in one request of deletion."""
_NAME = re.compile(r"(?!\.)[A-Za-z0-9._-]+(/(?!\.)[A-Za-z0-9._-]+)*")
_T = TypeVar("_T")


class BucketStore:
    """See `tiered.objects.store.ObjectStore`, and the module."""

    def __init__(
        self, backend: Backend, *, title: str, limits: StoreLimits, timeout_ms: int
    ) -> None:
        self._backend = backend
        self._title = title
        """What errors call the bucket: its region and place."""
        self._limits = limits
        self._timeout_ms = timeout_ms
        self.traffic = Traffic()

    async def put(self, name: str, parts: Sequence[Buffer]) -> None:
        """See `ObjectStore.put`."""
        _check(name)
        size = sum(map(_size, parts))
        try:
            if size <= PART_BYTES:
                await self._put_whole(name, b"".join(parts))
            else:
                await self._put_parts(name, parts)
        except StoreError:
            if not await self._holds(name, parts, size):
                raise

    async def create(self, name: str, data: bytes) -> None:
        """See `ObjectStore.create`."""
        _check(name)
        try:
            async with self._limits.upload(len(data)):
                await self._limits.upload_pace.take(len(data))
                self._count_put(len(data))
                await self._in_time(self._backend.create(name, data), f"create {name}")
            return
        except StoreError as error:
            failure = error
        try:
            found = await self.get(name)
            again = await self.get(name) if found != data else found
        except StoreError:
            raise failure from None
        if found == data:
            return
        if found != again:
            raise StoreError(f"{self._title}: {name} reads differently each time") from failure
        raise ObjectExistsError(f"{self._title}: {name} has another content") from failure

    async def get(self, name: str) -> bytes:
        """See `ObjectStore.get`."""
        _check(name)
        async with self._limits.download(0):
            self.traffic.get_count += 1
            request = self._backend.get(name, bytes_max=GET_BYTES_MAX)
            data = await self._found(name, self._in_time(request, f"get {name}"))
        self.traffic.received_bytes += len(data)
        return data

    async def get_range(self, name: str, start: int, end: int) -> Buffer:
        """See `ObjectStore.get_range`."""
        _check(name)
        assert 0 <= start < end, (start, end)
        async with self._limits.download(end - start):
            self.traffic.get_count += 1
            request = self._backend.get_range(name, start, end)
            data = await self._found(name, self._in_time(request, f"read {name}"))
        self.traffic.received_bytes += len(data)
        if len(data) != end - start:
            raise StoreError(f"{self._title}: {len(data)} bytes came of {name} [{start}, {end})")
        return data

    async def list(self, prefix: str) -> AsyncIterator[ObjectInfo]:
        """See `ObjectStore.list`."""
        pages = aiter(self._backend.pages(prefix))
        last = ""
        self.traffic.list_count += 1
        page_count = 0
        while True:
            try:
                page = await self._in_time(anext(pages), f"list {prefix}")
            except StopAsyncIteration:
                return
            page_count += 1
            self.traffic.list_count += page_count > 1
            for one in page:
                if one.name <= last:
                    raise StoreError(f"{self._title}: lists {one.name} after {last}")
                last = one.name
                yield one

    async def delete(self, names: Sequence[str]) -> None:
        """See `ObjectStore.delete`."""
        for name in names:
            _check(name)
        for first in range(0, len(names), DELETES_MAX):
            some = names[first : first + DELETES_MAX]
            self.traffic.delete_count += 1
            await self._in_time(self._backend.delete(some), f"delete {len(some)} objects")

    def copies_from(self, source: "BucketStore") -> bool:
        """Whether the store can copy objects of that bucket inside itself, as far as is known."""
        return self._backend.copies_from(source._backend)

    async def copy_from(
        self, source: "BucketStore", name: str, new_name: str, *, size_bytes: int
    ) -> bool:
        """Copy an object of another bucket inside the store: no byte comes here. False if the store
        cannot do that for these two, or does not say that it has; then nothing is known. Raises
        ObjectAbsentError if the other bucket lacks it, StoreError."""
        _check(name)
        _check(new_name)
        timeout_ms = self._timeout_ms * (1 + size_bytes // COPIED_PER_TIMEOUT_BYTES)
        if not self.copies_from(source):
            return False
        self.traffic.put_count += 1
        self.traffic.get_count += 1
        request = self._backend.copy_from(source._backend, name, new_name)
        try:
            await self._in_time(request, f"copy {name}", timeout_ms=timeout_ms)
            size = await self._in_time(self._backend.size(new_name), f"size of {new_name}")
        except NotFoundAnswerError:
            check = source._backend.is_absent(name)
            if await source._in_time(check, f"look for {name}"):
                raise ObjectAbsentError(f"{source._title}: has no {name}") from None
            return False
        except StoreError:
            return False
        return size == size_bytes

    # ---- writes ----------------------------------------------------------------------------------

    async def _put_whole(self, name: str, data: bytes) -> None:
        async with self._limits.upload(len(data)):
            await self._limits.upload_pace.take(len(data))
            self._count_put(len(data))
            await self._in_time(self._backend.put(name, data), f"put {name}")

    async def _put_parts(self, name: str, parts: Sequence[Buffer]) -> None:
        budget = self._limits.upload_budget.bytes_max
        parts_max = max(1, min(PARTS_INFLIGHT_MAX, budget // PART_BYTES))
        async with self._limits.upload(parts_max * PART_BYTES):
            progress = _Progress()
            self.traffic.put_count += 2  # The first and the last request of an upload in parts.
            request = self._backend.put_parts(
                name, self._paced(parts, progress), parts_max=parts_max
            )
            await self._while_progress(request, progress, f"put {name}")

    async def _paced(
        self, parts: Sequence[Buffer], progress: "_Progress"
    ) -> AsyncIterator[Sequence[Buffer]]:
        for part in _cut(parts, PART_BYTES):
            progress.is_waiting = True
            await self._limits.upload_pace.take(sum(map(_size, part)))
            progress.is_waiting = False
            progress.count += 1
            self._count_put(len(part))
            yield part

    def _count_put(self, size_bytes: int) -> None:
        self.traffic.put_count += 1
        self.traffic.sent_bytes += size_bytes

    async def _holds(self, name: str, parts: Sequence[Buffer], size: int) -> bool:
        """Whether the store has exactly these bytes under the name; False if it does not say."""
        try:
            self.traffic.get_count += 1
            request = self._backend.size(name)
            if await self._in_time(request, f"size of {name}") != size:
                return False
            if not size:
                return True
            position = 0
            for part in map(b"".join, _cut(parts, PART_BYTES)):
                found = await self.get_range(name, position, position + len(part))
                if found != part:
                    return False
                position += len(part)
        except StoreError:
            return False
        return True

    # ---- answers and deadlines -------------------------------------------------------------------

    async def _found(self, name: str, request: Awaitable[_T]) -> _T:
        """The answer to a read; makes sure that an object that is not found is absent."""
        try:
            return await request
        except NotFoundAnswerError as error:
            self.traffic.list_count += 1
            check = self._backend.is_absent(name)
            if await self._in_time(check, f"look for {name}"):
                raise ObjectAbsentError(f"{self._title}: has no {name}") from error
            raise StoreError(f"{self._title}: lists {name}, and does not find it") from error

    async def _in_time(self, request: Awaitable[_T], what: str, *, timeout_ms: int = 0) -> _T:
        timeout_ms = timeout_ms or self._timeout_ms
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await request
        except TimeoutError:
            raise StoreError(f"{self._title}: {what}: no answer in {timeout_ms} ms") from None
        except (NotFoundAnswerError, TakenAnswerError) as error:
            raise type(error)(f"{self._title}: {what}: {error}") from error
        except StoreError as error:
            raise StoreError(f"{self._title}: {what}: {error}") from error

    async def _while_progress(
        self, request: Awaitable[None], progress: "_Progress", what: str
    ) -> None:
        """Await an upload as long as it takes parts; the last ones have a deadline each, too."""
        task = asyncio.ensure_future(request)
        patience_s = (PARTS_INFLIGHT_MAX + 1) * self._timeout_ms / 1000
        try:
            while True:
                before = progress.count
                done, _ = await asyncio.wait({task}, timeout=patience_s)
                if done:
                    break
                if progress.count == before and not progress.is_waiting:
                    raise StoreError(
                        f"{self._title}: {what}: no progress in {patience_s * 1000:.0f} ms"
                    )
            try:
                task.result()
            except StoreError as error:
                raise StoreError(f"{self._title}: {what}: {error}") from error
        finally:
            if not task.done():
                task.cancel()


class _Progress:
    """How far an upload is. `is_waiting`: it waits for the broker's own pace."""

    def __init__(self) -> None:
        self.count = 0
        self.is_waiting = False


def _check(name: str) -> None:
    assert _NAME.fullmatch(name) and len(name) <= 900, name


def _size(part: Buffer) -> int:
    return memoryview(part).nbytes


def _cut(parts: Sequence[Buffer], size: int) -> Iterator[Sequence[Buffer]]:
    """The bytes of some buffers, in pieces of one size, each of one or more buffers; the last one
    may be shorter. Nothing is copied: 8 MiB take the event loop milliseconds."""
    piece: list[memoryview] = []
    room = size
    for part in parts:
        rest = memoryview(part).cast("B")
        while rest.nbytes:
            piece.append(rest[:room])
            rest = rest[room:]
            room -= piece[-1].nbytes
            if not room:
                yield piece
                piece, room = [], size
    if piece:
        yield piece
