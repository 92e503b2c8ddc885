"""One read of old records under way: what it has found, and who is told when it finds more.

Owns:   its slices, and its task; the downloads that it waits for belong to the reader."""

import asyncio
from collections.abc import Callable

from strandline.model.ids import Offset
from strandline.tiered.reading.finding import FoundBatches, RemoteSlice


class RemoteRead:
    """WAITING --batches found--> has slices --as much as was asked, or the end--> OVER;
    WAITING --no bucket has usable bytes--> OVER, failed."""

    def __init__(self, offset: Offset) -> None:
        self.slices: list[RemoteSlice] = []
        """What has been found so far, in order: whole batches."""
        self.size_bytes = 0
        self.next_offset = offset
        """Where the next read goes on."""
        self.is_over = False
        self.is_failed = False
        """No bucket could give what comes first."""
        self.task: asyncio.Task[None] | None = None
        self._watchers: dict[object, Callable[[], None]] = {}

    def watch(self, callback: Callable[[], None]) -> "ReadWatch":
        """Call `callback` once, when more has been found or the read is over."""
        watch = ReadWatch(self._watchers)
        self._watchers[watch] = callback
        return watch

    def drop(self) -> None:
        """Wait for it no longer; its downloads go on. What has been found stays."""
        self._watchers.clear()
        if self.task is not None:
            self.task.cancel()

    def add(self, found: FoundBatches) -> None:
        """More has been found."""
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
