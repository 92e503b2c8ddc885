"""Which chunks stay in the cache: a segmented LRU, so that one backfill does not flush the rest.

Why:    a consumer that reads a year of history once touches more bytes than the cache has. With a
        plain LRU, its chunks would push out those that many consumers read again and again.
How:    new --> PROBATION --used again, after a pause--> PROTECTED
                    |    <--------- too many ------------    |
                    v                                        v
                 evicted                        evicted only if PROBATION is empty
        A reader takes a chunk in several fetches. Uses within `SAME_USE_MS` of a chunk's arrival
        are therefore one use.
            A scan's chunks stay in memory, and are not kept when it has passed them. `GhostList`
        remembers their keys: the next scan of them has them written to the disk.
Owns:   keys and sizes; no file.
Source: Karedla et al. 1994 (segmented LRU); O'Neil et al. 1993 (correlated references); Johnson and
        Shasha 1994 (2Q, whose A1out is a list of keys alone)."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

SAME_USE_MS = 30_000
PROTECTED_RATIO = 0.75
"""The share of the bytes that protected chunks may have."""


GHOST_COUNT_MAX = 65_536
"""So many keys are remembered, about 200 bytes each."""


class GhostList(Generic[K]):
    """Keys of what was used once and let go. `bytes_max`: what all of it would take."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._sizes: OrderedDict[K, int] = OrderedDict()
        """{key: bytes}, the oldest first."""
        self._size_bytes = 0

    def __len__(self) -> int:
        return len(self._sizes)

    def add(self, key: K, size_bytes: int) -> None:
        """Remember a key; the oldest ones are forgotten."""
        self.take(key)
        self._sizes[key] = size_bytes
        self._size_bytes += size_bytes
        while self._size_bytes > self._bytes_max or len(self._sizes) > GHOST_COUNT_MAX:
            _, gone_bytes = self._sizes.popitem(last=False)
            self._size_bytes -= gone_bytes

    def take(self, key: K) -> bool:
        """Forget a key; whether it was remembered."""
        size_bytes = self._sizes.pop(key, None)
        if size_bytes is not None:
            self._size_bytes -= size_bytes
        return size_bytes is not None


class SegmentedLru(Generic[K]):
    """See the module. `bytes_max`: of both parts together."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._protected_bytes_max = int(bytes_max * PROTECTED_RATIO)
        self._probation: OrderedDict[K, tuple[int, int]] = OrderedDict()
        """{key: (bytes, when it arrived)}, least recently used first."""
        self._protected: OrderedDict[K, int] = OrderedDict()
        """{key: bytes}, least recently used first."""
        self._probation_bytes = self._protected_bytes = 0

    def __contains__(self, key: K) -> bool:
        return key in self._probation or key in self._protected

    def __len__(self) -> int:
        return len(self._probation) + len(self._protected)

    @property
    def size_bytes(self) -> int:
        """All that is kept."""
        return self._probation_bytes + self._protected_bytes

    def add(self, key: K, size_bytes: int, now_ms: int) -> list[K]:
        """Keep `key`; returns what has to go. `key` itself is among them if it is too large."""
        assert key not in self, f"{key} is kept already"
        self._probation[key] = size_bytes, now_ms
        self._probation_bytes += size_bytes
        return self._evict(self._bytes_max)

    def use(self, key: K, now_ms: int) -> None:
        """`key` is read; harmless if it is gone."""
        if key in self._protected:
            self._protected.move_to_end(key)
            return
        found = self._probation.get(key)
        if found is None:
            return
        size_bytes, arrived_ms = found
        if now_ms - arrived_ms < SAME_USE_MS:
            self._probation.move_to_end(key)
            return
        del self._probation[key]
        self._probation_bytes -= size_bytes
        self._protected[key] = size_bytes
        self._protected_bytes += size_bytes
        while self._protected_bytes > self._protected_bytes_max:
            demoted, demoted_bytes = self._protected.popitem(last=False)
            self._protected_bytes -= demoted_bytes
            self._probation[demoted] = demoted_bytes, now_ms
            self._probation_bytes += demoted_bytes

    def discard(self, key: K) -> bool:
        """Forget `key`; whether it was kept."""
        found = self._probation.pop(key, None)
        if found is not None:
            self._probation_bytes -= found[0]
            return True
        size_bytes = self._protected.pop(key, None)
        if size_bytes is not None:
            self._protected_bytes -= size_bytes
        return size_bytes is not None

    def shrink(self, ratio: float) -> list[K]:
        """Evict until at most this share of what is kept remains; what has to go."""
        return self._evict(int(self.size_bytes * ratio))

    def _evict(self, bytes_max: int) -> list[K]:
        gone = []
        while self.size_bytes > bytes_max:
            if self._probation:
                key, (size_bytes, _) = self._probation.popitem(last=False)
                self._probation_bytes -= size_bytes
            else:
                key, size_bytes = self._protected.popitem(last=False)
                self._protected_bytes -= size_bytes
            gone.append(key)
        return gone
