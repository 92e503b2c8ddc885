"""What tiering asks of an object store, and the errors that it may get.

Why:    buckets fail in ways that disks do not: a put may have been applied though its answer says
        otherwise, a list may lag, an error is no proof of absence. The interface says which is
        which; the simulator provides it too.
How:    names are relative to the bucket's prefix. Objects are immutable: one name, one content.
Source: decision 0057; Design section 11."""

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, Protocol

from strandline.base.disk import Buffer


class StoreError(Exception):
    """The store gave no usable answer. After a put, the object may be there or not."""


class ObjectAbsentError(StoreError):
    """The store says for certain that it has no object of this name."""


class ObjectExistsError(StoreError):
    """`create` found another content under this name."""


class ObjectInfo(NamedTuple):
    """One object of a listing."""

    name: str
    size_bytes: int
    modified_ms: int
    """The store's own clock, which may be wrong by minutes."""


class ObjectStore(Protocol):
    """One bucket, or a part of it below a prefix. All calls have a deadline of their own."""

    async def put(self, name: str, parts: Sequence[Buffer]) -> None:
        """Store one object; it is whole, or absent. Raises StoreError: then it is not known."""

    async def create(self, name: str, data: bytes) -> None:
        """Store it unless the name is taken; a store whose answer is unclear is read back.
        Raises ObjectExistsError where the name has another content, StoreError."""

    async def get(self, name: str) -> bytes:
        """The whole object. Raises ObjectAbsentError, StoreError."""

    async def get_range(self, name: str, start: int, end: int) -> Buffer:
        """Bytes [start, end); exactly as many. Raises ObjectAbsentError, StoreError."""

    def list(self, prefix: str) -> AsyncIterator[ObjectInfo]:
        """All objects whose names begin so, in the order of their names. Raises StoreError."""

    async def delete(self, names: Sequence[str]) -> None:
        """Remove them; what is absent is no error. Raises StoreError."""
