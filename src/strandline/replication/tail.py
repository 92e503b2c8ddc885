"""The newest entries of a leader's log, still in memory, so that followers are not served from the
disk.

Why:    the buffers that a producer filled go to the leader's disk and to every follower's socket,
        without being read back.
How:    a queue of appended chunks in index order. Chunks leave at the front once every follower in
        step has them, or when they exceed the limit: whoever still needs them is served from the
        log.
Owns:   references to the producers' buffers; one per leading replica.
Source: Redpanda RFC 20220119 (one set of buffers for the disk and the followers)."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from strandline.base.disk import Buffer
from strandline.model.ids import Epoch, Index
from strandline.raft.configuration import Configuration


@dataclass(slots=True)
class Chunk:
    """Entries appended in one go, all of one epoch. `hand_overs_left` until its memory units
    return."""

    first_index: Index
    last_index: Index
    epoch: Epoch
    buffers: Sequence[Buffer]
    size_bytes: int
    configuration: Configuration | None
    relaxed: bool
    units_bytes: int
    hand_overs_left: int


class Tail:
    """See the module."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._chunks: deque[Chunk] = deque()
        self.size_bytes = 0

    @property
    def first_index(self) -> Index:
        """Where the oldest chunk begins; beyond every index when there is none."""
        return self._chunks[0].first_index if self._chunks else Index(1 << 62)

    def add(self, chunk: Chunk) -> None:
        """Append; drops the oldest chunks beyond the limit, but never the newest."""
        if self._chunks and self._chunks[-1].last_index + 1 != chunk.first_index:
            self.clear()
        self._chunks.append(chunk)
        self.size_bytes += chunk.size_bytes
        while self.size_bytes > self._limit_bytes and len(self._chunks) > 1:
            self.size_bytes -= self._chunks.popleft().size_bytes

    def take(self, first_index: Index, bytes_max: int) -> list[Chunk]:
        """Chunks from the one that begins at `first_index` on; empty when it is not here."""
        chunks = self._chunks
        if not chunks or first_index < chunks[0].first_index:
            return []
        taken: list[Chunk] = []
        size = 0
        # Followers in step ask for the newest chunks: look from the back.
        start = len(chunks)
        while start > 0 and chunks[start - 1].first_index >= first_index:
            start -= 1
        if start == len(chunks) or chunks[start].first_index != first_index:
            return []
        for position in range(start, len(chunks)):
            chunk = chunks[position]
            if taken and size + chunk.size_bytes > bytes_max:
                break
            taken.append(chunk)
            size += chunk.size_bytes
        return taken

    def drop_through(self, index: Index) -> None:
        """Forget chunks that nobody needs any more."""
        while self._chunks and self._chunks[0].last_index <= index:
            self.size_bytes -= self._chunks.popleft().size_bytes

    def clear(self) -> None:
        """Forget everything."""
        self._chunks.clear()
        self.size_bytes = 0
