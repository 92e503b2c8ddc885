"""The bytes of one simulated file: what a read sees, and what would be left after a power failure.

Why:    the promise "acknowledged means durable" is only worth something if what was not flushed is
        really lost now and then, in the ways in which disks lose it.
How:    `current` is the page cache, `durable` the platter; between them lies the list of changes
        that were not flushed, in order. `flush_up_to` applies changes to the platter. `crash`
        picks, for the size and for every 512-byte sector on its own, how many of the changes that
        touched it arrived; a sector never holds a later change without the earlier ones, as a page
        cache writes whole sectors. A size may arrive without the data: then zeros are read.
        What a flush failed to write is in `current` alone, until it is written again or the cache
        lets go of it.
Owns:   the contents; `disk.py` owns the names.
Source: design section 10; ATC'20, "Can Applications Recover from fsync Failures?"."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from strandline.base.disk import Buffer

SECTOR_BYTES = 512


class CrashStyle(Enum):
    """How the changes that were not flushed arrive on the platter when the power fails."""

    KEEP_ALL = "all arrives"
    LOSE_ALL = "nothing arrives"
    PREFIX = "the first writes arrive, the next one is torn"
    PER_WRITE = "each write arrives, is lost, or is torn"
    SCATTER = "each sector arrives or is lost on its own"


@dataclass(slots=True)
class Change:
    """A write of `data` at `position`, or, without data, a new size; `size` is that after it."""

    sequence: int
    size: int
    position: int = 0
    data: bytes | None = None


class Content:
    """Bytes with a size; what lies between the stored bytes and the size reads as zeros."""

    __slots__ = ("data", "size")

    def __init__(self) -> None:
        self.data = bytearray()
        self.size = 0

    def write(self, position: int, data: Buffer) -> None:
        """Put `data` at `position`; grows where needed."""
        stored = self.data
        if position > len(stored):
            stored.extend(bytes(position - len(stored)))
        stored[position : position + len(data)] = data
        self.size = max(self.size, position + len(data))

    def resize(self, size: int) -> None:
        """Cut, or extend with zeros."""
        if size < len(self.data):
            del self.data[size:]
        self.size = size

    def read(self, length: int, position: int) -> bytes:
        """Up to `length` bytes; shorter only at the end."""
        end = min(position + length, self.size)
        found = bytes(self.data[position:end])
        return found + bytes(max(0, end - position) - len(found))

    def copy(self) -> "Content":
        """An independent twin."""
        twin = Content()
        twin.data = bytearray(self.data)
        twin.size = self.size
        return twin


class FileImage:
    """See the module."""

    def __init__(self) -> None:
        self.current = Content()
        self.durable = Content()
        self.unflushed: list[Change] = []
        self.sequence = 0
        self.modified_us = 0
        """When it was last changed, in the scheduler's time."""

    def write(self, position: int, buffers: Sequence[Buffer]) -> int:
        """Write to the page cache; returns the number of bytes."""
        data = b"".join(buffers)
        self.current.write(position, data)
        self._add(position, data)
        return len(data)

    def resize(self, size: int) -> None:
        """Cut or extend in the page cache."""
        self.current.resize(size)
        self._add(0, None)

    def flush_up_to(self, sequence: int) -> None:
        """The changes up to `sequence` are on the platter from now on."""
        rest: list[Change] = []
        for change in self.unflushed:
            if change.sequence > sequence:
                rest.append(change)
            elif change.data is None:
                self.durable.resize(change.size)
            else:
                self.durable.write(change.position, change.data)
        self.unflushed = rest

    def forget_up_to(self, sequence: int) -> None:
        """A flush failed: the pages count as clean, can be read, and will never be written.

        Sizes are in the file system's own journal, which goes on or takes nothing at all."""
        self.unflushed = [c for c in self.unflushed if c.sequence > sequence or c.data is None]

    def flip_bit(self, bit: int) -> None:
        """Rot: one bit changes, in the page cache and on the platter."""
        position, mask = bit // 8, 1 << (bit % 8)
        for content in (self.current, self.durable):
            if position < len(content.data):
                content.data[position] ^= mask

    def flip_bit_below(self, bit: int) -> None:
        """The same on the platter alone: who reads is still given what the page cache holds."""
        position = bit // 8
        if position < len(self.durable.data):
            self.durable.data[position] ^= 1 << (bit % 8)

    def forget_cached(self, position: int, length: int) -> None:
        """The page cache lets go of this range, where all of the file has been flushed, or counts
        as that. What never reached the platter is a hole."""
        length = min(length, self.current.size - position)
        if not self.unflushed and length > 0:
            found = self.durable.read(length, position)
            self.current.write(position, found + bytes(length - len(found)))

    def crash(self, rng: random.Random, style: CrashStyle) -> int:
        """The power fails; returns how many changes did not arrive as a whole."""
        if not self.unflushed:
            self.current = self.durable.copy()
            return 0
        survivors = _Survivors(rng, style, self.unflushed, self.durable.size)
        lost_count = survivors.apply(self.durable)
        self.current = self.durable.copy()
        self.unflushed = []
        return lost_count

    def _add(self, position: int, data: bytes | None) -> None:
        self.sequence += 1
        self.unflushed.append(Change(self.sequence, self.current.size, position, data))


class _Survivors:
    """Decides for a list of changes what arrives: so many sizes, and per sector so many writes."""

    def __init__(
        self, rng: random.Random, style: CrashStyle, changes: list[Change], durable_size: int
    ) -> None:
        self._rng = rng
        self._style = style
        self._changes = changes
        self._last_by_sector: dict[int, int] = {}
        """{sector: position in `changes` of the last write that arrived there}; missing: none."""
        self._sizes_count = self._choose()
        """The sizes of so many changes arrived."""
        self._size = changes[self._sizes_count - 1].size if self._sizes_count else durable_size

    def apply(self, content: Content) -> int:
        """Put what arrives into `content`; returns how many changes did not arrive as a whole."""
        lost_count = 0
        frozen_from = _NO_LIMIT
        """Bytes from here on were cut off by a change of size that did not arrive: nothing written
        later reaches them."""
        for number, change in enumerate(self._changes):
            if change.data is None:
                if number < self._sizes_count:
                    content.resize(change.size)
                else:
                    frozen_from = min(frozen_from, change.size)
                    lost_count += 1
                continue
            whole = True
            for position, piece in _sectors(change.position, change.data):
                arrived = self._last_by_sector.get(position // SECTOR_BYTES, -1) >= number
                if arrived and position + len(piece) <= frozen_from:
                    content.write(position, piece)
                else:
                    whole = False
            lost_count += not whole
        content.resize(self._size)
        return lost_count

    def _choose(self) -> int:
        """Fill `_last_by_sector`; returns how many sizes arrive."""
        count = len(self._changes)
        match self._style:
            case CrashStyle.LOSE_ALL:
                return 0 if self._rng.random() < 0.7 else self._rng.randint(0, count)
            case CrashStyle.KEEP_ALL:
                for number in range(count):
                    self._keep(number, 1.0)
                return count
            case CrashStyle.PREFIX:
                whole_count = self._rng.randint(0, count)
                for number in range(whole_count):
                    self._keep(number, 1.0)
                if whole_count < count:
                    self._keep(whole_count, 0.5)
                return self._rng.randint(whole_count, min(whole_count + 1, count))
            case CrashStyle.PER_WRITE:
                for number in range(count):
                    self._keep(number, self._rng.choice((0.0, 0.5, 1.0)))
            case CrashStyle.SCATTER:
                for number in range(count):
                    self._keep(number, 0.5)
        return self._rng.randint(0, count)

    def _keep(self, number: int, probability: float) -> None:
        """Each sector of the change arrives with this probability."""
        change = self._changes[number]
        if change.data is None:
            return
        for position, _ in _sectors(change.position, change.data):
            if probability == 1.0 or self._rng.random() < probability:
                self._last_by_sector[position // SECTOR_BYTES] = number


_NO_LIMIT = 1 << 62


def _sectors(position: int, data: bytes) -> list[tuple[int, bytes]]:
    """`data` in pieces that each lie in one sector, with their positions."""
    pieces = []
    begin = 0
    while begin < len(data):
        end = min(len(data), begin + SECTOR_BYTES - (position + begin) % SECTOR_BYTES)
        pieces.append((position + begin, data[begin:end]))
        begin = end
    return pieces
