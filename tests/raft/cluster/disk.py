"""A simulated disk: what was not flushed may be lost by a crash, from the end.

Why:    acknowledgements are about what survives; the difference must hurt.
How:    `image` is what the process sees, `durable` what survives for sure. Between them lie
        operations in order; a crash keeps a prefix of them. Epoch and vote are durable at once.
Owns:   one log and one state."""

import random
from bisect import bisect_left
from typing import NamedTuple

from strandline.raft.group.configuration import Configuration


class Batch(NamedTuple):
    """Entries `first_index` to `last_index` of one epoch. A marker takes no offset."""

    first_index: int
    last_index: int
    epoch: int
    id: int
    is_marker: bool
    configuration: Configuration | None


class LogImage:
    """Whole batches, contiguous from `start_index` on."""

    __slots__ = ("batches", "previous_epoch", "start_configuration", "start_index", "start_offset")

    def __init__(self, configuration: Configuration) -> None:
        self.start_index = 0
        self.start_offset = 0
        self.previous_epoch = 0
        self.start_configuration = configuration
        self.batches: list[Batch] = []

    @property
    def last_index(self) -> int:
        return self.batches[-1].last_index if self.batches else self.start_index - 1

    def copy(self) -> "LogImage":
        other = LogImage(self.start_configuration)
        other.start_index = self.start_index
        other.start_offset = self.start_offset
        other.previous_epoch = self.previous_epoch
        other.batches = self.batches.copy()
        return other

    def position(self, first_index: int) -> int:
        """Where the batch that begins at `first_index` is; it must begin there."""
        at = bisect_left(self.batches, first_index, key=_first_index)
        begins = at < len(self.batches) and self.batches[at].first_index == first_index
        assert begins or first_index == self.last_index + 1, f"{first_index} begins no batch"
        return at

    def holds(self, batch: Batch) -> bool:
        """Whether exactly this batch is here, or was dropped from the front."""
        if batch.last_index < self.start_index:
            return True
        at = bisect_left(self.batches, batch.first_index, key=_first_index)
        return at < len(self.batches) and self.batches[at] == batch

    def append(self, batch: Batch) -> None:
        assert batch.first_index == self.last_index + 1
        self.batches.append(batch)

    def truncate(self, from_index: int) -> None:
        del self.batches[self.position(from_index) :]

    def drop_prefix(self, first_index: int, configuration: Configuration) -> None:
        at = self.position(first_index)
        dropped = self.batches[:at]
        self.start_offset += data_count(dropped)
        self.previous_epoch = dropped[-1].epoch if dropped else self.previous_epoch
        self.start_index = first_index
        self.start_configuration = configuration
        del self.batches[:at]

    def epochs(self) -> list[tuple[int, int]]:
        result: list[tuple[int, int]] = []
        for batch in self.batches:
            if not result or result[-1][0] != batch.epoch:
                result.append((batch.epoch, batch.first_index))
        return result

    def configurations(self) -> list[tuple[int, Configuration]]:
        return [(b.first_index, b.configuration) for b in self.batches if b.configuration]


class Disk:
    """See the module."""

    def __init__(self, configuration: Configuration) -> None:
        self.epoch = 0
        self.vote = -1
        self.delegated_epoch = 0
        self.is_whole = True
        self.image = LogImage(configuration)
        self.durable = LogImage(configuration)
        self._pending: list[Batch | int] = []
        self._performed = 0

    # ---- operations ------------------------------------------------------------------------------

    def append(self, batch: Batch) -> None:
        self.image.append(batch)
        self._pending.append(batch)

    def truncate(self, from_index: int) -> None:
        self.image.truncate(from_index)
        self._pending.append(from_index)

    def drop_prefix(self, first_index: int, configuration: Configuration) -> None:
        """Only of what is flushed."""
        self.image.drop_prefix(first_index, configuration)
        self.durable.drop_prefix(first_index, configuration)

    def reset(self, image: LogImage) -> None:
        self.image = image
        self.durable = image.copy()
        self._performed += len(self._pending)
        self._pending.clear()

    @property
    def has_pending(self) -> bool:
        """Whether anything is written and not flushed."""
        return bool(self._pending)

    # ---- durability ------------------------------------------------------------------------------

    def begin_flush(self) -> int:
        """A ticket for `end_flush`."""
        return self._performed + len(self._pending)

    def end_flush(self, ticket: int) -> None:
        self._perform(ticket - self._performed)

    def lose_power(self, rng: random.Random) -> bool:
        """Keep a prefix of what was not flushed; whether something was lost."""
        total = len(self._pending)
        kept = rng.choice((0, total, rng.randint(0, total)))
        self._perform(kept)
        self._performed += len(self._pending)
        self._pending.clear()
        self.image = self.durable.copy()
        return kept < total

    def _perform(self, count: int) -> None:
        if count <= 0:
            return
        for operation in self._pending[:count]:
            if isinstance(operation, Batch):
                self.durable.append(operation)
            else:
                self.durable.truncate(operation)
        del self._pending[:count]
        self._performed += count


def data_count(batches: list[Batch]) -> int:
    """How many offsets the batches take."""
    return sum(b.last_index - b.first_index + 1 for b in batches if not b.is_marker)


def _first_index(batch: Batch) -> int:
    return batch.first_index
