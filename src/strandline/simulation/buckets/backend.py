"""One process's requests to a simulated bucket: `tiered.objects.backend.Backend` in virtual time.

Why:    the judgement of `BucketStore` runs in the simulator as it does in the real world.
How:    A request is carried out halfway through its latency, by the bucket: a process that dies or
        gives up does not take it back. The answer reaches the process if it lives.
Owns:   nothing.
Source: decision 0058."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from strandline.base.disk import Buffer
from strandline.simulation.buckets.bucket import SimBucket
from strandline.simulation.world.process import Process
from strandline.tiered.objects.backend import Backend, NotFoundAnswerError, TakenAnswerError
from strandline.tiered.objects.store import ObjectInfo, StoreError

PAGE_COUNT = 7
"""Small, so that listings have several pages."""
_T = TypeVar("_T")


@dataclass(slots=True)
class SimBackend:
    """See the module."""

    bucket: SimBucket
    process: Process

    async def put(self, name: str, data: bytes) -> None:
        """See `Backend.put`."""
        await self._write(lambda: self.bucket.put(name, data))

    async def put_parts(
        self, name: str, parts: AsyncIterator[Sequence[Buffer]], *, parts_max: int
    ) -> None:
        """See `Backend.put_parts`: the object is there once all its parts are complete."""
        held = [await self._part(b"".join(part)) async for part in parts]
        await self._write(lambda: self.bucket.put(name, b"".join(held)))

    async def create(self, name: str, data: bytes) -> None:
        """See `Backend.create`."""

        def apply() -> None:
            if self.bucket.get(name) is not None:
                raise TakenAnswerError(f"{name} is there")
            self.bucket.put(name, data)

        if self.bucket.draw(self.bucket.faults.taken_share):
            await self._request(lambda: None)
            raise TakenAnswerError("409: another request is under way")
        await self._write(apply)

    async def get(self, name: str, *, bytes_max: int) -> bytes:
        """See `Backend.get`."""
        return await self._request(lambda: self._read(name))

    async def get_range(self, name: str, start: int, end: int) -> bytes:
        """See `Backend.get_range`."""
        return await self._request(lambda: self._read(name, start, end))

    async def size(self, name: str) -> int:
        """See `Backend.size`."""
        return await self._request(lambda: len(self._found(name)))

    async def is_absent(self, name: str) -> bool:
        """See `Backend.is_absent`."""
        listing = self.bucket.listing
        return await self._request(lambda: all(one.name != name for one in listing(name)))

    async def pages(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        """See `Backend.pages`: each page is of its own moment."""
        last = ""
        while page := await self._request(lambda last=last: self._page(prefix, last)):  # type: ignore[misc]
            last = page[-1].name
            yield page

    def copies_from(self, source: Backend) -> bool:
        """See `Backend.copies_from`: this store has no such request."""
        return False

    async def copy_from(self, source: Backend, name: str, new_name: str) -> None:
        """See `Backend.copy_from`."""
        raise StoreError("no such request")

    async def delete(self, names: Sequence[str]) -> None:
        """See `Backend.delete`."""

        def apply() -> None:
            for name in names:
                self.bucket.delete(name)

        await self._write(apply)

    # ---- reads -----------------------------------------------------------------------------------

    def _found(self, name: str) -> bytes:
        data = self.bucket.get(name)
        if data is None or self.bucket.draw(self.bucket.faults.missing_share):
            raise NotFoundAnswerError(f"404: {name}")
        return data

    def _read(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        data = self._found(name)[start:end]
        faults, bucket = self.bucket.faults, self.bucket
        if data and bucket.draw(faults.wrong_bytes_share):
            bucket.counters.failed_count += 1
            at = bucket.rng.randrange(len(data))
            data = data[:at] + bytes([data[at] ^ 1 << bucket.rng.randrange(8)]) + data[at + 1 :]
        if bucket.draw(faults.half_body_share):
            bucket.counters.failed_count += 1
            raise StoreError(f"{len(data) // 2} of {len(data)} bytes came")
        return data

    def _page(self, prefix: str, last: str) -> list[ObjectInfo]:
        after = (one for one in self.bucket.listing(prefix) if one.name > last)
        return [one for one, _ in zip(after, range(PAGE_COUNT), strict=False)]

    # ---- requests --------------------------------------------------------------------------------

    async def _part(self, part: bytes) -> bytes:
        return await self._request(lambda: part)

    async def _write(self, apply: Callable[[], None]) -> None:
        faults, bucket = self.bucket.faults, self.bucket
        if bucket.draw(faults.late_share):
            bucket.counters.failed_count += 1

            def come_late() -> None:
                _outcome_of(apply)

            bucket.scheduler.after(faults.late_us, come_late)
            await asyncio.get_running_loop().create_future()
        is_error = bucket.draw(faults.applied_error_share)
        await self._request(apply)
        if is_error:
            bucket.counters.failed_count += 1
            raise StoreError("503: slow down")

    async def _request(self, apply: Callable[[], _T]) -> _T:
        """Carry something out in the bucket; its result, or the StoreError that it raised."""
        faults, bucket = self.bucket.faults, self.bucket
        bucket.counters.request_count += 1
        latency_us = bucket.draw_latency_us()
        is_throttled = bucket.draw(faults.throttled_share)
        is_lost = bucket.draw(faults.lost_before_share)
        is_unanswered = bucket.draw(faults.lost_after_share)
        answer: asyncio.Future[_T] = asyncio.get_running_loop().create_future()

        def carry_out() -> None:
            result: _T | StoreError
            if faults.is_gone or is_throttled:
                bucket.counters.failed_count += 1
                result = StoreError("503: slow down" if is_throttled else "no route to the bucket")
            elif is_lost:
                bucket.counters.failed_count += 1
                return
            else:
                result = _outcome_of(apply)
            if is_unanswered:
                bucket.counters.failed_count += 1
                return
            self.process.after(latency_us - latency_us // 2, lambda: deliver(result))

        def deliver(result: _T | StoreError) -> None:
            if answer.done():  # The process has given up.
                return
            if isinstance(result, StoreError):
                answer.set_exception(result)
            else:
                answer.set_result(result)

        bucket.scheduler.after(latency_us // 2, carry_out)
        return await answer


def _outcome_of(apply: Callable[[], _T]) -> _T | StoreError:
    try:
        return apply()
    except StoreError as error:
        return error
