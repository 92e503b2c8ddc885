"""Rolls, shortens and compacts one replica's log, as its topic asks.

Why:    when old segments go, the group must still know the configuration in force at the new start.
        It must be durable before the entries that brought it are removed.
How:    retention --PrefixDropped--> core --base to the journal--> durable --> segments removed

        With tiered storage, it removes nothing before the tier's last durable checkpoint.
        If the disk has no space, even for a file's name, the reserve gives some, or the step is
        tried again.
Owns:   nothing; the log and the base are the replica's.
Source: design section 4 (retention, compaction); Raft thesis 5.1 (what a prefix leaves behind);
        decision 0024."""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from strandline.base.clock import Clock
from strandline.base.disk import is_full
from strandline.base.errors import StorageError
from strandline.model.ids import Index
from strandline.raft.events import PrefixDropped
from strandline.replication.replica.delete_records import Deletions
from strandline.replication.replica.durable_state import DurableState
from strandline.replication.replica.state import ReplicaState
from strandline.replication.replica.tier import ReplicaTier
from strandline.storage.layout import SegmentName
from strandline.storage.reserve import Reserve

FULL_RETRY_MS = 10_000
"""How long work that is not urgent waits for space on a full disk."""


class MaintenanceListener(Protocol):
    """The replica whose log is maintained."""

    def step(self, event: PrefixDropped) -> None:
        """The log will begin later."""

    def fail(self, error: Exception) -> None:
        """The log or the journal cannot be trusted any more."""

    def on_full(self, error: OSError | StorageError) -> None:
        """Something found no space on the disk, and is tried again."""


class LogMaintenance:
    """See the module. `flush`: makes the log durable soon; `compact`: puts it in the queue of those
    that are compacted."""

    def __init__(
        self,
        replica: ReplicaState,
        deletions: Deletions,
        tier: ReplicaTier,
        durable: DurableState,
        listener: MaintenanceListener,
        *,
        clock: Clock,
        reserve: Reserve,
        flush: Callable[[], None],
        compact: Callable[[], None],
    ) -> None:
        self._replica = replica
        self._deletions = deletions
        self._tier = tier
        self._durable = durable
        self._listener = listener
        self._clock = clock
        self._reserve = reserve
        self._flush = flush
        self._compact = compact

    def run(self) -> None:
        """Do whatever the topic's configuration asks.

        It removes only committed entries, and never from under readers."""
        replica = self._replica
        if replica.failed is not None or replica.is_busy:
            return
        try:
            if replica.log.roll_if_due() and replica.log.config.compacted:
                self._flush()  # Only a durable segment is compacted, and no append may follow.
            self._drop_prefix()
            self._tier.maintain()
            self._compact()
        except (OSError, StorageError) as error:
            self._on_unclean(error)

    def roll(self) -> None:
        """Close the active segment, so that its records can go."""
        if self._replica.failed is None:
            try:
                self._replica.log.roll_if_due(is_wanted=True)
            except (OSError, StorageError) as error:
                self._on_unclean(error)

    def _on_base_persisted(self, error: OSError | None) -> None:
        """The configuration at the log's start is durable, or will have to be put again."""
        replica = self._replica
        if error is None or replica.failed is not None:
            return
        if is_full(error):
            self._listener.on_full(error)
            self._persist_base_later()
        else:
            self._listener.fail(error)

    def _on_unclean(self, error: OSError | StorageError) -> None:
        """The log could not be rolled or shortened; with more space that is tried again."""
        if self._replica.log.failed or not is_full(error):
            self._listener.fail(error)
            return
        self._listener.on_full(error)
        if self._reserve.release(self._replica.name):  # Removals free space.
            self.run()

    def _drop_prefix(self) -> None:
        replica = self._replica
        log = replica.log
        start = log.retention_start(
            replica.committed_end,
            deleted_before=max(self._deletions.before, replica.snapshot_offset),
            tiered=self._tier.covered(),
        )
        if self._tier.is_in_use:
            start = self._before_checkpoint(start)
        dropped = replica.raft.log.first_index
        if log.start_index < dropped and start.base_index < dropped:
            # An earlier decision is under way: it cannot be taken back, though less may go now.
            start = log.segment_at(dropped)
        if start.base_index <= log.start_index or start.base_index - 1 > replica.raft.commit:
            return
        self._listener.step(PrefixDropped(start.base_index, start.base_offset))
        replica.base = replica.raft.start_configuration
        self._durable.persist_base(replica, partial(self._remove_segments, start.base_index))

    def _before_checkpoint(self, start: SegmentName) -> SegmentName:
        """The log's new start, when it is to be `start`: the tier's last checkpoint stays."""
        log, removable = self._replica.log, self._tier.removable_index
        if start.base_index <= log.start_index or start.base_index <= removable:
            return start
        allowed = log.segment_at(max(removable, log.start_index))
        freed_bytes = log.size_before(start.base_index) - log.size_before(allowed.base_index)
        self._tier.want_checkpoint(freed_bytes=freed_bytes)
        return allowed

    def persist_base(self) -> None:
        """Make the configuration at the log's start durable; `base` has changed."""
        self._durable.persist_base(self._replica, self._on_base_persisted)

    def _persist_base_later(self) -> None:
        self._clock.call_later(FULL_RETRY_MS, self._persist_base_again)

    def _persist_base_again(self) -> None:
        replica = self._replica
        if replica.failed is not None:
            return
        if replica.is_busy:  # The core is ahead of the journal: its own state goes first.
            self._persist_base_later()
        else:
            self.persist_base()

    def _remove_segments(self, start: Index, error: OSError | None) -> None:
        """The configuration at the new start is durable: the segments may go."""
        if error is None and self._replica.failed is None:
            try:
                self._replica.log.remove_segments_before(start)
                return
            except OSError as failure:
                error = failure
        if error is not None:
            self._on_unclean(error)
