"""What one kind of store can do, one request at a time: no deadline, no second thoughts.

Why:    a directory, S3 and the simulator differ in requests alone; what an answer proves is decided
        in one place, `bucket_store.py`.
Source: decision 0058."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from strandline.base.disk import Buffer
from strandline.tiered.objects.store import ObjectInfo, StoreError

PART_BYTES = 8 << 20
"""The size of a part of a large object."""


class NotFoundAnswerError(StoreError):
    """The store answered that it has no such object; or no such bucket."""


class TakenAnswerError(StoreError):
    """The store answered that the name is taken: by another content, or by our own."""


class Backend(Protocol):
    """The requests. Every failure is a StoreError; after one, a write may have been applied."""

    async def put(self, name: str, data: bytes) -> None:
        """Store a whole object."""

    async def put_parts(
        self, name: str, parts: AsyncIterator[Sequence[Buffer]], *, parts_max: int
    ) -> None:
        """Store a whole object whose parts come one by one, each as buffers of `PART_BYTES`
        together, the last one of fewer; at most `parts_max` are in flight."""

    async def create(self, name: str, data: bytes) -> None:
        """Store a whole object unless the name is taken. Raises TakenAnswerError, StoreError."""

    async def get(self, name: str, *, bytes_max: int) -> bytes:
        """A whole object. Raises NotFoundAnswerError, StoreError; a larger one is an error."""

    async def get_range(self, name: str, start: int, end: int) -> Buffer:
        """Bytes [start, end), fewer if the object ends there. Raises NotFoundAnswerError,
        StoreError."""

    async def size(self, name: str) -> int:
        """The size of an object, in bytes. Raises NotFoundAnswerError, StoreError."""

    async def is_absent(self, name: str) -> bool:
        """Whether a listing, which succeeds only if the bucket is there, lacks the name."""

    def pages(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        """All objects whose names begin so, in the order of their names, page by page."""

    def copies_from(self, source: "Backend") -> bool:
        """Whether `copy_from` may work for that bucket."""

    async def copy_from(self, source: "Backend", name: str, new_name: str) -> None:
        """Copy an object of another bucket inside the store, under a new name; only if
        `copies_from`. Raises NotFoundAnswerError, StoreError."""

    async def delete(self, names: Sequence[str]) -> None:
        """Remove objects; what is absent is no error."""
