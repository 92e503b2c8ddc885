"""The sparse index of one segment: where to begin a walk for an offset, a position or a time.

Why:    one entry each few KiB is enough, since a walk over headers from there is cheap; the arrays
        cost 16 bytes per entry, and those of closed segments are loaded only while they are used.
How:    three arrays of one length, in the order of the log. Entry i stands for a data batch
        (never a marker): its relative offset, its position, and the highest timestamp of all
        batches before it.
Source: design section 4; Kafka's .index and .timeindex, whose entry sizes these are."""

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from typing import Protocol

INDEX_ENTRY_BYTES = 8
TIME_ENTRY_BYTES = 12
_LITTLE = sys.byteorder == "little"
_LOADED_COUNT_MAX = 2

assert array("I").itemsize == 4


class SparseIndex:
    """The entries of one segment."""

    __slots__ = ("offsets", "positions", "timestamps")

    def __init__(self) -> None:
        self.offsets = array("I")
        self.positions = array("I")
        self.timestamps = array("q")

    def add(self, relative_offset: int, position: int, timestamp_before: int) -> None:
        """Add an entry for the data batch at `position`; entries come in order."""
        assert not self.positions or position > self.positions[-1], f"an entry back at {position}"
        self.offsets.append(relative_offset)
        self.positions.append(position)
        self.timestamps.append(timestamp_before)

    def floor_offset(self, relative_offset: int) -> int:
        """A position at or before the batch with this offset."""
        entry = bisect_right(self.offsets, relative_offset) - 1
        return self.positions[entry] if entry >= 0 else 0

    def floor_position(self, position: int) -> int:
        """The highest known beginning of a batch at or before `position`."""
        entry = bisect_right(self.positions, position) - 1
        return self.positions[entry] if entry >= 0 else 0

    def entry_before(self, position: int) -> tuple[int, int]:
        """(position, relative offset) of the last entry at or before `position`; (0, 0) for the
        segment's base."""
        entry = bisect_right(self.positions, position) - 1
        return (self.positions[entry], self.offsets[entry]) if entry >= 0 else (0, 0)

    def floor_time(self, timestamp: int) -> int:
        """A position before which no batch reaches `timestamp`."""
        entry = bisect_left(self.timestamps, timestamp) - 1
        return self.positions[entry] if entry >= 0 else 0

    def after(self, position: int, end: int) -> int:
        """The position of the first entry above `position`; `end` when there is none."""
        entry = bisect_right(self.positions, position)
        return self.positions[entry] if entry < len(self.positions) else end

    def latest_before(self, position: int) -> tuple[int, int]:
        """(position, highest timestamp before it) of the last entry below `position`; (0, -1) for
        none."""
        entry = bisect_left(self.positions, position) - 1
        return (self.positions[entry], self.timestamps[entry]) if entry >= 0 else (0, -1)

    def truncate(self, position: int) -> None:
        """Remove the entries at `position` and above."""
        count = bisect_left(self.positions, position)
        del self.offsets[count:], self.positions[count:], self.timestamps[count:]

    def encode_offsets(self) -> bytes:
        """The bytes of the `.index` file."""
        both = array("I", bytes(INDEX_ENTRY_BYTES * len(self.offsets)))
        both[0::2] = self.offsets
        both[1::2] = self.positions
        if _LITTLE:
            both.byteswap()
        return both.tobytes()

    def encode_times(self) -> bytes:
        """The bytes of the `.timeindex` file."""
        times = array("q", self.timestamps)
        offsets = array("I", self.offsets)
        if _LITTLE:
            times.byteswap()
            offsets.byteswap()
        halves = array("I", times.tobytes())
        rows = array("I", bytes(TIME_ENTRY_BYTES * len(offsets)))
        rows[0::3] = halves[0::2]
        rows[1::3] = halves[1::2]
        rows[2::3] = offsets
        return rows.tobytes()

    @classmethod
    def decode(cls, offsets: bytes, times: bytes) -> "SparseIndex":
        """The index that the two files hold; their CRCs have been checked."""
        index = cls()
        both = array("I", offsets)
        rows = array("I", times)
        halves = array("I", bytes(len(rows) // 3 * 8))
        halves[0::2] = rows[0::3]
        halves[1::2] = rows[1::3]
        stamps = array("q", halves.tobytes())
        if _LITTLE:
            both.byteswap()
            stamps.byteswap()
        index.offsets = both[0::2]
        index.positions = both[1::2]
        index.timestamps = stamps
        return index


class Indexed(Protocol):
    """A closed segment, as the cache sees it."""

    def drop_index(self) -> None:
        """Drop the index from memory; the next use loads it again."""


class IndexCache:
    """Bounds how many closed segments of one log keep their index in memory."""

    __slots__ = ("_loaded",)

    def __init__(self) -> None:
        self._loaded: OrderedDict[Indexed, None] = OrderedDict()

    def hold(self, segment: Indexed) -> None:
        """The index of a closed segment is in memory; drops the index that was used longest ago."""
        self._loaded[segment] = None
        self._loaded.move_to_end(segment)
        if len(self._loaded) > _LOADED_COUNT_MAX:
            oldest, _ = self._loaded.popitem(last=False)
            oldest.drop_index()

    def forget(self, segment: Indexed) -> None:
        """The segment became active or is gone: the cache no longer drops its index."""
        self._loaded.pop(segment, None)
