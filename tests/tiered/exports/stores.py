"""An object store in memory, which can stop before and after each change, for tests of exports."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from strandline.base.disk import Buffer
from strandline.tiered.objects.store import (
    ObjectAbsentError,
    ObjectExistsError,
    ObjectInfo,
    StoreError,
)


async def _at_once() -> None:
    return None


class MemoryStore:
    """`objects`: {name: (content, time)}; `gate` is awaited before each call and after each change;
    `fail`: called with the operation and the name, and may raise."""

    def __init__(
        self,
        objects: dict[str, tuple[bytes, int]] | None = None,
        gate: Callable[[], Awaitable[None]] = _at_once,
    ) -> None:
        self.objects = {} if objects is None else objects
        self.gate = gate
        self.now_ms = 0
        self.calls: list[tuple[str, str]] = []
        self.fail: Callable[[str, str], None] = lambda operation, name: None

    async def _begin(self, operation: str, name: str) -> None:
        await self.gate()
        self.calls.append((operation, name))
        self.fail(operation, name)

    async def put(self, name: str, parts: Sequence[Buffer]) -> None:
        await self._begin("put", name)
        self.objects[name] = (b"".join(parts), self.now_ms)
        await self.gate()

    async def create(self, name: str, data: bytes) -> None:
        await self._begin("create", name)
        if self.objects.setdefault(name, (data, self.now_ms))[0] != data:
            raise ObjectExistsError(name)
        await self.gate()

    async def get(self, name: str) -> bytes:
        await self._begin("get", name)
        if name not in self.objects:
            raise ObjectAbsentError(name)
        return self.objects[name][0]

    async def get_range(self, name: str, start: int, end: int) -> bytes:
        data = (await self.get(name))[start:end]
        if len(data) != end - start:
            raise StoreError(f"{name} ends before {end}")
        return data

    async def list(self, prefix: str) -> AsyncIterator[ObjectInfo]:
        await self._begin("list", prefix)
        for name in sorted(self.objects):
            if name.startswith(prefix) and name in self.objects:
                data, at_ms = self.objects[name]
                yield ObjectInfo(name, len(data), at_ms)

    async def delete(self, names: Sequence[str]) -> None:
        await self._begin("delete", " ".join(names))
        for name in names:
            self.objects.pop(name, None)
        await self.gate()
