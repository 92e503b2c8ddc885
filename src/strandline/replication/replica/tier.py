"""The tier of one replica: what buckets hold, as far as its log is committed.

Why:    every replica must know where old records are, and no replica may remove a local record
        before enough buckets have it.
How:    leader: `propose` --> a TIER marker in the log, replicated and committed like any record
        all:    committed --> `TierState.apply`, or `delete_records` for a deletion

        Retention removes markers with the records around them. So the leader appends a checkpoint,
        a marker with the whole state, when no other marker is under way; a replica removes only
        what is before its last committed and flushed checkpoint. A replica whose log begins later
        than the partition's did, and has no checkpoint yet, does not know the state: it serves no
        offset below its own log until it does. When a new checkpoint is committed and flushed,
        retention runs at once: it waited for this one.
        The lineage of a checkpoint says whether a replica has its state already.
Owns:   the committed state, per replica.
Source: decision 0057."""

import hashlib
import logging
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

import msgspec

from strandline.base.clock import Clock
from strandline.base.errors import ApiError
from strandline.model.cluster import BucketRange
from strandline.model.ids import Epoch, Index, Offset
from strandline.protocol.errors import Error
from strandline.replication.leader.leadership import Leadership
from strandline.replication.replica.state import ReplicaState
from strandline.replication.waiters import MarkWaiters
from strandline.storage.log.retention import Tiered
from strandline.tiered.state.commands import BucketImage, Checkpoint, Command
from strandline.tiered.state.encoding import UnknownRecordError, decode, encode, is_checkpoint
from strandline.tiered.state.tier import LINEAGE_BYTES, TierState
from strandline.tiered.state.transitions import Refusal

MARKER_BYTES_MAX = 64 << 10
"""So many bytes of markers, or as many as the last checkpoint has, may follow it before the leader
appends the next one: a replica keeps them in memory, and reads them when it starts."""

_NO_START = Offset(-1), Index(-1), Offset(0)
"""(where the log begins, the state's index, where the partition begins then)."""

TierDone = Callable[[Error, Refusal | None], None]
"""Called once with (error, why the state refused the command)."""

_log = logging.getLogger("strandline.replication")


class RemoteOffsetError(ApiError):
    """The record is in a bucket only: the caller reads it from there."""

    def __init__(self, offset: Offset) -> None:
        super().__init__(
            Error.OFFSET_MOVED_TO_TIERED_STORAGE, f"offset {offset} is in tiered storage only"
        )
        self.offset = offset


class TieringReplica(Protocol):
    """What the tier asks of its replica."""

    leadership: Leadership | None

    @property
    def can_serve_reads(self) -> bool:
        """Whether the replica certainly leads, and knows everything committed."""

    def fail(self, error: Exception) -> None:
        """The log cannot be trusted any more."""

    def clean(self) -> None:
        """Run the log's retention."""


class ReplicaTier:
    """See the module. `state`: of what is committed; read it only. `checkpoint_index`: of the last
    committed checkpoint; -1 for none. `wrong_buckets`: see `Shared`."""

    def __init__(
        self,
        replica: ReplicaState,
        owner: TieringReplica,
        waiters: MarkWaiters,
        clock: Clock,
        *,
        wrong_buckets: Collection[str] = (),
    ) -> None:
        self._replica = replica
        self._owner = owner
        self._waiters = waiters
        self._clock = clock
        self._wrong_buckets = wrong_buckets
        self.state = TierState()
        self.history: tuple[BucketRange, ...] = ()
        """Records before the group's log, in buckets; its first checkpoint says what has them."""
        self.is_known = False
        """Whether `state` is the partition's, as of some commit. Otherwise markers are missing."""
        self.checkpoint_index = Index(-1)
        self._checkpoint_bytes = 0
        self._refusals: dict[Index, Refusal] = {}
        """{index of a proposed command: why it was refused}, until its proposer hears of it."""
        self._proposed: set[Index] = set()
        self._is_checkpoint_due = False
        self.is_clean_due = False
        """Whether retention runs once the last checkpoint is durable."""
        self._applied = Index(-1)
        self._start = _NO_START
        self.on_reset()

    # ---- what others ask -------------------------------------------------------------------------

    @property
    def is_in_use(self) -> bool:
        """Whether the topic has remote storage, or buckets that still hold some of it."""
        return self._replica.log.config.remote_storage or not self.state.is_blank

    @property
    def is_settled(self) -> bool:
        """Whether every tier marker and deletion in the log is committed and applied."""
        log = self._replica.log
        return not _has_above(log.tier_markers, self._applied) and not _has_above(
            log.deletions, self._applied
        )

    @property
    def awaits_history(self) -> bool:
        """Whether the group's first checkpoint is missing, as far as is known here. Only a leader
        that knows all commits is sure."""
        return bool(self.history) and not self.is_known and self._replica.log.config.remote_storage

    def begin_with(self, images: Sequence[BucketImage], deleted_before: Offset) -> bool:
        """For the leader: append the first checkpoint, which says what buckets have of the history.
        False if that is not possible now."""
        if not self.awaits_history or not self.is_settled or not self._can_append:
            return False
        log = self._replica.log
        assert log.start_index > 0, "a log with a history begins behind it"
        epoch = self._replica.epoch
        deleted = max(deleted_before, self.state.deleted_before)
        blank = Checkpoint(Index(log.start_index - 1), epoch, b"", deleted, 0, tuple(images))
        lineage = hashlib.blake2b(encode(blank), digest_size=LINEAGE_BYTES).digest()
        return self._append(encode(msgspec.structs.replace(blank, lineage=lineage)))

    @property
    def knows_start(self) -> bool:
        """Whether `start_offset` is where the partition begins, as of some commit.

        After a restart the state may be older than the log's start: then the live segments may end
        before the log begins, and the markers of those between are not known to be committed."""
        log = self._replica.log
        if not log.config.remote_storage:
            return True
        if not self.is_known:
            return False
        return self.is_settled or not log.start_offset or self.start_offset < log.start_offset

    @property
    def start_offset(self) -> Offset:
        """Where the partition begins, with what buckets hold; for a topic without remote storage
        where the log begins."""
        log = self._replica.log
        local = log.start_offset
        if self.state.is_blank or not log.config.remote_storage:
            return local
        known = self._start
        if known[0] != local or known[1] != self.state.index:
            self._start = known = local, self.state.index, self.state.start_offset(local)
        return known[2]

    def epoch_end_offset(self, epoch: Epoch) -> tuple[Epoch, Offset] | None:
        """As `Log.epoch_end_offset`, for an epoch from before the log; None where the log itself
        answers."""
        log = self._replica.log
        if self.state.is_blank or not log.config.remote_storage:
            return None
        first = log.epochs[0][0] if log.epochs else log.previous_epoch
        if epoch >= first:
            return None
        return self.state.epoch_end_offset(epoch, local_start=log.start_offset, local_epoch=first)

    # ---- what retention asks ---------------------------------------------------------------------

    def covered(self) -> Tiered | None:
        """What buckets have of the local log, as far as this replica's disk says so; None for a
        topic without remote storage."""
        log = self._replica.log
        if not log.config.remote_storage:
            return None
        local = log.start_offset
        if not self.is_known or self.state.index > log.flushed_index:
            # After a power failure the log could lack the markers that say so.
            return Tiered(local, is_first=False)
        config = log.config
        covered_end = self.state.covered_end(
            config.remote_copies_min,
            config.remote_buckets,
            from_offset=local,
            wrong=self._wrong_buckets,
        )
        return Tiered(covered_end, is_first=self.state.start_offset(local) >= local)

    @property
    def removable_index(self) -> Index:
        """Retention may remove the entries before this index: a durable checkpoint has what their
        markers say."""
        durable = self.checkpoint_index <= self._replica.log.flushed_index
        return self.checkpoint_index if durable else Index(-1)

    def want_checkpoint(self, *, freed_bytes: int) -> None:
        """For retention: the leader appends a checkpoint soon, because that frees so many bytes. It
        waits for more than the next one and the last one take: else one that fills a segment would
        be replaced by its like for ever."""
        if freed_bytes > 2 * self._checkpoint_bytes:
            self._checkpoint_soon()

    def maintain(self) -> None:
        """Now and then: forget the markers before a durable checkpoint; a leader appends the next
        one if that is due."""
        if self.removable_index >= 0:
            # Not before: a power failure could take the checkpoint, and leave summaries without
            # the markers.
            self._replica.log.forget_tier_markers(self.removable_index)
        if self.history and not self.is_known and not self._replica.log.config.remote_storage:
            self._checkpoint_soon()  # The operator has given the history up.
        if not self.is_in_use or not self._replica.is_leader:
            return
        log, base = self._replica.log, self.checkpoint_index
        size = sum(len(payload) for index, payload in log.tier_markers if index > base)
        is_first = base < 0 and log.config.remote_storage
        if is_first or size > max(MARKER_BYTES_MAX, self._checkpoint_bytes):
            self._checkpoint_soon()

    # ---- the leader's part -----------------------------------------------------------------------

    def propose(self, command: Command, done: TierDone) -> None:
        """Append a command; `done` is called once it is applied or refused, with NONE.

        NOT_LEADER_OR_FOLLOWER: it may be applied, or not; KAFKA_STORAGE_ERROR: it is not."""
        if not self._can_append:
            done(Error.NOT_LEADER_OR_FOLLOWER, None)
            return
        index = Index(self._replica.log.last_index + 1)
        self._proposed.add(index)
        if not self._append(encode(command)):
            self._proposed.discard(index)
            done(Error.KAFKA_STORAGE_ERROR, None)
            return

        def on_commit(error: Error) -> None:
            self._proposed.discard(index)
            done(error, self._refusals.pop(index, None))

        self._waiters.wait(index, self._replica.marks.commit, on_commit)

    @property
    def _can_append(self) -> bool:
        return self._replica.can_append and self._owner.can_serve_reads

    def _append(self, payload: bytes) -> bool:
        """Write the marker at the log's end; False if the disk has no space for it."""
        assert self._owner.leadership is not None
        try:
            self._owner.leadership.append_tier(payload)
        except OSError as error:
            _log.warning("%s: no tier marker was written: %s", self._replica.name, error)
            if self._replica.log.failed:
                self._owner.fail(error)
            return False
        return True

    def _checkpoint_soon(self) -> None:
        """Append a checkpoint after the work in hand, or once all markers are committed."""
        if self._can_append and not self._is_checkpoint_due and not self.awaits_history:
            self._is_checkpoint_due = True
            self._clock.call_soon(self._checkpoint_now)

    def _checkpoint_now(self) -> None:
        if not self._is_checkpoint_due or not self._can_append:
            self._is_checkpoint_due = False
            return
        if self.is_settled:
            self._is_checkpoint_due = False
            if not self.is_known and self._replica.log.start_index and self.state.refused_count:
                _log.error(
                    "%s: what buckets held was in the lost part of the log; it is read from their "
                    "exports, or lost",
                    self._replica.name,
                )
            self._append(encode(self.state.checkpoint()))

    # ---- what the replica feeds ------------------------------------------------------------------

    def on_reset(self) -> None:
        """The log begins anew, or was just opened: nothing of it is known to be committed."""
        self.state = TierState()
        log = self._replica.log
        self.is_known = log.start_index == 0 and not log.tier_forgotten
        self.checkpoint_index = Index(-1)
        self._checkpoint_bytes = 0
        self.is_clean_due = False
        self._applied = Index(-1)
        self._start = _NO_START

    def on_commit(self, commit: Index) -> None:
        """Everything up to `commit` is committed."""
        log = self._replica.log
        # Most logs have neither, and this runs at every commit.
        if log.has_tier_or_deletions and not self.is_settled:
            self._apply(commit)
        if commit > self._applied:
            self._applied = commit
        if self._is_checkpoint_due:
            self._clock.call_soon(self._checkpoint_now)
        if self.is_clean_due:
            self.on_flushed()

    def on_flushed(self) -> None:
        """More of the log is durable, or committed: run retention if it waits for that."""
        if self.is_clean_due and self.checkpoint_index <= self._replica.log.flushed_index:
            self._clock.call_soon(self._clean_now)

    def _clean_now(self) -> None:
        if self.is_clean_due and not self._replica.is_busy:  # Else the next flush tries again.
            self.is_clean_due = False
            self._owner.clean()

    def _apply(self, commit: Index) -> None:
        log = self._replica.log
        found: list[tuple[Index, bytes | Offset]] = [*log.tier_markers, *log.deletions]
        found = sorted((one for one in found if self._applied < one[0] <= commit), key=_index_of)
        if self._applied < 0:  # The last checkpoint has what is before it.
            checkpoints = [at for at, one in enumerate(found) if _has_checkpoint(one[1])]
            del found[: checkpoints[-1] if checkpoints else 0]
        for index, payload in found:
            if not isinstance(payload, bytes):
                self.state.delete_records(index, log.epoch_of(index), payload)
                continue
            try:
                record = decode(payload)
            except UnknownRecordError as error:
                self._owner.fail(error)
                return
            if isinstance(record, Checkpoint):
                self._take(index, record, size_bytes=len(payload))
            else:
                self._apply_command(index, record)

    def _apply_command(self, index: Index, command: Command) -> None:
        log = self._replica.log
        epoch, log_end = log.epoch_of(index), log.offset_of(index)
        refusal = self.state.apply(index, epoch, command, log_end=log_end)
        if refusal is not None:
            _log.info(
                "%s: a tier marker (%s, bucket %s) at index %d changes nothing: %s",
                self._replica.name,
                type(command).__name__,
                command.bucket,
                index,
                refusal.value,
            )
            if index in self._proposed:
                self._refusals[index] = refusal

    def _take(self, index: Index, checkpoint: Checkpoint, *, size_bytes: int) -> None:
        """The committed checkpoint at `index`: the state is this one from here on."""
        state = self.state
        if (state.index, state.lineage) != (checkpoint.index, checkpoint.lineage):
            if self.is_known and self._applied >= 0:
                _log.error(
                    "%s: the checkpoint at index %d has another state than this replica, which "
                    "takes it: a part of the log was declared lost",
                    self._replica.name,
                    index,
                )
            self.state = TierState.restored(checkpoint)
            self._start = _NO_START
        # Not for those that a replica finds in its log when it starts: a broker has many logs.
        self.is_clean_due = self._applied >= 0
        self.is_known = True
        self.checkpoint_index = index
        self._checkpoint_bytes = size_bytes


def _has_above(entries: Sequence[tuple[Index, object]], mark: Index) -> bool:
    """Whether the last of these entries, ascending by index, is above the mark."""
    return bool(entries) and entries[-1][0] > mark


def _has_checkpoint(payload: bytes | Offset) -> bool:
    return isinstance(payload, bytes) and is_checkpoint(payload)


def _index_of(entry: tuple[Index, bytes | Offset]) -> Index:
    return entry[0]
