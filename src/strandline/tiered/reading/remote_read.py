"""One read of old records under way: what it has found, and who is told when it finds more.

Owns:   its slices, and its task; the downloads that it waits for belong to the reader."""

import asyncio
from collections.abc import Callable

from strandline.model.ids import Offset
from strandline.tiered.reading.finding import FoundBatches, RemoteSlice


class RemoteRead:
    """LOOKING in the cache --batches found--> has slices --as much as was asked, or the end--> OVER
    LOOKING --not all of them are there--> FETCHING from a bucket --they come--> LOOKING
    FETCHING --no bucket has usable bytes--> OVER, failed"""

    def __init__(self, offset: Offset) -> None:
        self.slices: list[RemoteSlice] = []
        """What has been found so far, in order: whole batches."""
        self.size_bytes = 0
        self.next_offset = offset
        """Where the next read goes on."""
        self.is_fetching = False
        """A bucket is asked; otherwise only the cache's disk."""
        self.is_over = False
        self.is_failed = False
        """No bucket could give what comes first."""
        self.task: asyncio.Task[None] | None = None
        self._watchers: dict[object, Callable[[], None]] = {}

    def watch(self, callback: Callable[[], None]) -> "ReadWatch":
        """Call `callback` once, when more is found, a bucket is asked, or the read is over."""
        watch = ReadWatch(self._watchers)
        self._watchers[watch] = callback
        return watch

    def drop(self) -> None:
        """Wait for it no longer; its downloads go on. What has been found stays."""
        self._watchers.clear()
        if self.task is not None:
            self.task.cancel()

    @property
    def is_looking(self) -> bool:
        """Whether the cache will say in a moment what it has."""
        return not self.is_over and not self.is_fetching

    @property
    def is_empty(self) -> bool:
        """Whether it is over and no record is there: `next_offset` says where the next may be."""
        return self.is_over and not self.is_failed and not self.slices

    def fetch(self) -> None:
        """A bucket has to be asked."""
        if not self.is_fetching:
            self.is_fetching = True
            self.tell()

    def add(self, found: FoundBatches) -> None:
        """More has been found."""
        self.is_fetching = False
        self.slices += found.slices
        self.size_bytes += found.size_bytes
        self.next_offset = found.next_offset

    def tell(self) -> None:
        """Call the watchers."""
        watchers, self._watchers = self._watchers, {}
        for callback in watchers.values():
            callback()


class ReadWatch:
    """A callback that has not been called."""

    __slots__ = ("_watchers",)

    def __init__(self, watchers: dict[object, Callable[[], None]]) -> None:
        self._watchers = watchers

    def cancel(self) -> None:
        """Make sure that it is not called."""
        self._watchers.pop(self, None)
