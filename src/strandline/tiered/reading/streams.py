"""Readers that go on where they stopped, and how far ahead of each the chunks are fetched.

Why:    a consumer of old data asks for the next records in a moment. If their chunk is on its way
        by then, the consumer reads as fast as the bucket gives.
How:    a read at an unknown offset: nothing ahead;  a read where an earlier one ended: 1 MiB ahead,
        doubled with each range up to 16 MiB; past an object's end it goes on in the next one. At
        most half of it is asked for in one range, so that two ranges are on their way.
        A reader is known by the offset that it should ask for next.
Owns:   one small entry for each reader, of the most recent ones.
Source: decision 0060."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

from strandline.model.ids import Offset
from strandline.tiered.reading.downloads import RANGE_CHUNKS_MAX

STREAM_COUNT_MAX = 4_096
WINDOW_CHUNKS_MAX = 2 * RANGE_CHUNKS_MAX
"""Two ranges: one comes while the other one is read."""


@dataclass(slots=True)
class Stream:
    """One reader. `ahead`: (object, the chunk up to which its chunks were asked for)."""

    window_chunks: int = 0
    ahead: tuple[str, int] = ("", 0)

    def widen(self) -> None:
        """Read further ahead from now on."""
        self.window_chunks = min(max(1, 2 * self.window_chunks), WINDOW_CHUNKS_MAX)


class Streams:
    """See the module."""

    def __init__(self) -> None:
        self._streams: OrderedDict[tuple[Hashable, Offset], Stream] = OrderedDict()

    def __len__(self) -> int:
        return len(self._streams)

    def find(self, partition: Hashable, offset: Offset) -> Stream:
        """The reader that should ask for `offset` next; a new one if there is none."""
        found = self._streams.get((partition, offset))
        if found is None:
            return Stream()
        if not found.window_chunks:
            found.widen()
        return found

    def move(self, partition: Hashable, stream: Stream, *, source: Offset, target: Offset) -> None:
        """A reader has got the records of [source, target)."""
        self._streams.pop((partition, source), None)
        self._streams[partition, target] = stream
        self._streams.move_to_end((partition, target))
        if len(self._streams) > STREAM_COUNT_MAX:
            self._streams.popitem(last=False)
