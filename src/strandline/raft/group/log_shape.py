"""The shape of a log: which epochs lie where, which entries are configurations, what is durable.

Why:    consensus needs neither bytes nor batches; it compares two logs by their runs of epochs.
How:    A run is a stretch of entries of one epoch. There are as many as there were elections, so
        lists with bisection do. By log matching, (index, epoch) names a whole prefix.

            first_index      epochs[1] start       last_index
            |                |                     |
            [ epoch 3 ...... | epoch 5 ........... ]        previous_epoch: of the entry before
                      ^ flushed_index
Owns:   a copy of what the storage knows. Only the Raft core changes it, in step with its effects.
Source: Raft thesis 3.5 (log matching); design section 4."""

from bisect import bisect_right

from strandline.model.ids import Epoch, Index, Offset
from strandline.raft.group.configuration import Configuration
from strandline.raft.messages import Run


class LogShape:
    """See the module. Indexes are inclusive; an empty log has `last_index == first_index - 1`."""

    __slots__ = (
        "compacted_index",
        "configurations",
        "epochs",
        "first_index",
        "flushed_index",
        "generation",
        "last_index",
        "previous_epoch",
        "start_offset",
    )

    def __init__(
        self,
        *,
        first_index: Index,
        last_index: Index,
        flushed_index: Index,
        previous_epoch: Epoch,
        start_offset: Offset,
        epochs: list[tuple[Epoch, Index]],
        configurations: list[tuple[Index, Configuration]],
    ) -> None:
        assert first_index - 1 <= last_index
        assert not epochs or epochs[0][1] == first_index
        assert bool(epochs) == (last_index >= first_index)
        self.first_index = first_index
        self.last_index = last_index
        # Durable up to here; never above last_index, never below first_index - 1.
        self.flushed_index = Index(max(first_index - 1, min(flushed_index, last_index)))
        # Of a compacted log nothing up to here is superseded by its key's last record up to here;
        # below first_index where nothing is known. Consensus hands it on, for the leader's driver.
        self.compacted_index = Index(-1)
        # The epoch of the entry at first_index - 1; 0 when there never was one.
        self.previous_epoch = previous_epoch
        # The Kafka offset of first_index.
        self.start_offset = start_offset
        # [(epoch, index of its first entry here)], both ascending.
        self.epochs = epochs
        # [(index, configuration)], ascending.
        self.configurations = configurations
        # How often entries were removed at the end: a flush asked for in an earlier generation
        # says nothing about the present entries.
        self.generation = 0

    @property
    def last_epoch(self) -> Epoch:
        """The epoch of the last entry, or of the one before an empty log."""
        return self.epochs[-1][0] if self.epochs else self.previous_epoch

    def epoch_at(self, index: Index) -> Epoch:
        """The epoch of the entry at `index`, which is between first_index - 1 and last_index."""
        assert self.first_index - 1 <= index <= self.last_index, (self.first_index, index)
        epochs = self.epochs
        if epochs and index >= epochs[-1][1]:
            return epochs[-1][0]
        at = self._run_at(index)
        return epochs[at][0] if at >= 0 else self.previous_epoch

    def agreeing_end(self, first: Index, run: Run) -> Index:
        """The last index, within the run, up to which the entries from `first` on are the run's.

        `first - 1` when not even the entry at `first` is."""
        if first > self.last_index or self.epoch_at(first) != run.epoch:
            return Index(first - 1)
        return min(run.last_index, self._run_end(self._run_at(first)))

    def last_of(self, epoch: Epoch, limit: Index) -> Index:
        """The highest index <= `limit` of an entry of `epoch` or an earlier one.

        first_index - 2 when all that is known here is later."""
        limit = min(limit, self.last_index)
        while limit >= self.first_index:
            at = self._run_at(limit)
            if self.epochs[at][0] <= epoch:
                return limit
            limit = Index(self.epochs[at][1] - 1)
        if limit == self.first_index - 1 and self.previous_epoch <= epoch:
            return limit
        return Index(self.first_index - 2)

    def runs(self, first: Index, last: Index) -> tuple[Run, ...]:
        """The runs of the entries `first` to `last`; empty when last < first."""
        result: list[Run] = []
        while first <= last:
            at = self._run_at(first)
            end = min(last, self._run_end(at))
            result.append(Run(self.epochs[at][0], end))
            first = Index(end + 1)
        return tuple(result)

    def configurations_between(
        self, first: Index, last: Index
    ) -> tuple[tuple[Index, Configuration], ...]:
        """The configurations at `first` to `last`, with their indexes."""
        return tuple(entry for entry in self.configurations if first <= entry[0] <= last)

    def append(self, epoch: Epoch, last_index: Index) -> None:
        """Entries of `epoch` from the end up to `last_index`."""
        assert last_index > self.last_index
        if not self.epochs or self.epochs[-1][0] != epoch:
            assert epoch >= self.last_epoch
            self.epochs.append((epoch, Index(self.last_index + 1)))
        self.last_index = last_index

    def truncate(self, from_index: Index) -> None:
        """Remove the entries at `from_index` and above."""
        assert self.first_index <= from_index <= self.last_index
        self.generation += 1
        self.last_index = Index(from_index - 1)
        self.flushed_index = min(self.flushed_index, self.last_index)
        while self.epochs and self.epochs[-1][1] >= from_index:
            self.epochs.pop()
        while self.configurations and self.configurations[-1][0] >= from_index:
            self.configurations.pop()

    def drop_prefix(self, first_index: Index, start_offset: Offset) -> None:
        """Remove the entries below `first_index`."""
        assert self.first_index <= first_index <= self.last_index + 1
        self.previous_epoch = self.epoch_at(Index(first_index - 1))
        at = self._run_at(first_index)
        self.epochs = (
            [(self.epochs[at][0], first_index), *self.epochs[at + 1 :]]
            if first_index <= self.last_index
            else []
        )
        self.configurations = [entry for entry in self.configurations if entry[0] >= first_index]
        self.first_index = first_index
        self.start_offset = start_offset
        self.flushed_index = max(self.flushed_index, Index(first_index - 1))

    def reset(self, start_index: Index, start_offset: Offset, *, previous_epoch: Epoch) -> None:
        """Drop everything; the next entry is `start_index`."""
        assert start_index >= self.first_index, "a log that begins anew begins further on"
        self.generation += 1
        self.first_index = start_index
        self.last_index = self.flushed_index = Index(start_index - 1)
        self.compacted_index = Index(-1)
        self.previous_epoch = previous_epoch
        self.start_offset = start_offset
        self.epochs = []
        self.configurations = []

    def _run_at(self, index: Index) -> int:
        """The position in `epochs` of the run that holds `index`; -1 for first_index - 1."""
        return bisect_right(self.epochs, index, key=_start_of) - 1

    def _run_end(self, at: int) -> Index:
        return Index(self.epochs[at + 1][1] - 1) if at + 1 < len(self.epochs) else self.last_index


def _start_of(run: tuple[Epoch, Index]) -> Index:
    return run[1]
