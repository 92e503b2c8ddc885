"""The newest entries of a leader's log, kept in memory so that followers need no disk read.

Why:    the buffers that a producer filled go to the leader's disk and to every follower's socket.
        Nothing reads them back.
How:    a queue of appended chunks in index order:

            [ kept .......... | waiting ........ ]
             first_index       ^ not yet handed to the sockets of enough followers

        Waiting chunks hold memory units and stay. Kept chunks go once every follower in step has
        been sent them, beyond the group's limit, or when the broker needs the memory. A follower
        that needs them later is served from the log.
Owns:   references to the producers' buffers, and their memory units; one per leader.
Source: Redpanda RFC 20220119 (one set of buffers for the disk and the followers; "Memory
        usage")."""

from collections import deque
from collections.abc import Sequence
from itertools import chain

import msgspec

from strandline.base.disk import Buffer
from strandline.model.ids import Epoch, Index
from strandline.raft.group.configuration import Configuration
from strandline.raft.messages import Run
from strandline.replication.memory_budget import MemoryBudget
from strandline.replication.replica.entries import decode_configuration
from strandline.storage.log import reads

BEYOND = Index(1 << 62)


class Chunk(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Entries appended in one go, all of one epoch."""

    first_index: Index
    last_index: Index
    epoch: Epoch
    buffers: Sequence[Buffer]
    size_bytes: int
    configuration: Configuration | None
    relaxed: bool


class AppendChunk(msgspec.Struct, frozen=True, gc=False):
    """Entries up to `last_index`, as an append carries them. `is_relaxed`: no acknowledgement waits
    for their flush. `is_in_memory`: they were not read from the log."""

    parts: Sequence[Buffer]
    last_index: Index
    runs: Sequence[Run]
    configurations: Sequence[tuple[Index, Configuration]]
    is_relaxed: bool = False
    is_in_memory: bool = False

    @classmethod
    def of(cls, chunks: Sequence[Chunk]) -> "AppendChunk":
        """Chunks of the tail that follow each other; at least one."""
        parts: list[Buffer] = []
        runs: list[Run] = []
        configurations: list[tuple[Index, Configuration]] = []
        is_relaxed = True
        for chunk in chunks:
            parts.extend(chunk.buffers)
            if runs and runs[-1].epoch == chunk.epoch:
                runs[-1] = Run(chunk.epoch, chunk.last_index)
            else:
                runs.append(Run(chunk.epoch, chunk.last_index))
            if chunk.configuration is not None:
                configurations.append((chunk.first_index, chunk.configuration))
            is_relaxed = is_relaxed and chunk.relaxed
        return cls(parts, chunks[-1].last_index, runs, configurations, is_relaxed, True)

    @classmethod
    def read(cls, entries: reads.Entries) -> "AppendChunk":
        """Entries that were read from the log."""
        return cls(
            [entries.data],
            entries.last_index,
            [Run(epoch, last) for epoch, last in entries.runs],
            [(index, decode_configuration(payload)) for index, payload in entries.configurations],
        )


NOTHING = AppendChunk((), Index(-1), (), ())


class Tail:
    """See the module; a `memory_budget.Keeper`."""

    def __init__(self, limit_bytes: int, memory: MemoryBudget) -> None:
        self._limit_bytes = limit_bytes
        self._memory = memory
        self._kept: deque[Chunk] = deque()
        self._waiting: deque[Chunk] = deque()
        # Every follower in step has been sent everything up to here.
        self._needless = Index(-1)
        self.kept_bytes = 0
        self.waiting_bytes = 0

    @property
    def first_index(self) -> Index:
        """Where the oldest chunk begins; beyond every index when there is none."""
        chunks = self._kept or self._waiting
        return chunks[0].first_index if chunks else BEYOND

    @property
    def has_room(self) -> bool:
        """Whether more may be appended before something is handed on."""
        return self.waiting_bytes < self._limit_bytes

    def add(self, chunk: Chunk) -> None:
        """Append; its units have been taken."""
        newest = self._waiting or self._kept
        assert not newest or newest[-1].last_index + 1 == chunk.first_index, "indexes are dense"
        self._waiting.append(chunk)
        self.waiting_bytes += chunk.size_bytes
        self._keep_to_limit()

    def take(self, first_index: Index, bytes_max: int) -> list[Chunk]:
        """Chunks from the one that begins at `first_index` on; empty when it is not here."""
        found: list[Chunk] = []
        # Followers in step ask for the newest chunks: look from the back.
        for chunk in chain(reversed(self._waiting), reversed(self._kept)):
            if chunk.first_index < first_index:
                break
            found.append(chunk)
        if not found or found[-1].first_index != first_index:
            return []
        taken = [found.pop()]
        size = taken[0].size_bytes
        while found and size + found[-1].size_bytes <= bytes_max:
            size += found[-1].size_bytes
            taken.append(found.pop())
        return taken

    def boundary_after(self, index: Index) -> Index:
        """Where the first chunk beyond `index` begins; beyond every index when there is none."""
        boundary = BEYOND
        for chunk in chain(reversed(self._waiting), reversed(self._kept)):
            if chunk.first_index <= index:
                break
            boundary = chunk.first_index
        return boundary

    def hand_through(self, index: Index) -> None:
        """Everything up to `index` has been handed to enough followers: units return."""
        waiting = self._waiting
        handed_bytes = kept_bytes = 0
        while waiting and waiting[0].last_index <= index:
            chunk = waiting.popleft()
            handed_bytes += chunk.size_bytes
            if chunk.last_index > self._needless:
                self._kept.append(chunk)
                kept_bytes += chunk.size_bytes
        if not handed_bytes:
            return
        self.waiting_bytes -= handed_bytes
        assert self.waiting_bytes >= 0
        self.kept_bytes += kept_bytes
        self._memory.give_back(handed_bytes)
        if kept_bytes:
            self._memory.keep(self, kept_bytes)
            self._keep_to_limit()

    def drop_through(self, index: Index) -> None:
        """Every follower in step has been sent everything up to `index`."""
        self._needless = max(self._needless, index)
        while self._kept and self._kept[0].last_index <= index:
            self.drop_oldest()

    def drop_oldest(self) -> None:
        """See `memory_budget.Keeper`."""
        size = self._kept.popleft().size_bytes
        self.kept_bytes -= size
        assert self.kept_bytes >= 0
        self._memory.forget(self, size)

    def clear(self) -> None:
        """Forget everything: all units return."""
        while self._kept:
            self.drop_oldest()
        assert not self.kept_bytes
        self._waiting.clear()
        waiting_bytes, self.waiting_bytes = self.waiting_bytes, 0
        self._memory.give_back(waiting_bytes)

    def _keep_to_limit(self) -> None:
        while self._kept and self.kept_bytes + self.waiting_bytes > self._limit_bytes:
            self.drop_oldest()
