"""DeleteRecords: where a partition begins for readers, and how that moves.

Why:    no reader may see a deleted record again, whichever replica leads and whichever restarted.
How:    delete --> a DELETION marker in the log: replicated, flushed and committed like any record
               --> committed: the start moves on every replica that knows of the commit
               --> the client gets its answer once every living replica has flushed the marker;
                   observers that have not asked this leader for the start do not count, because
                   no client reads from them

        A marker says only that the records below an offset are deleted; that offset is never above
        its own. When retention removes the marker, it has removed those records before, so nothing
        else has to remember them. A follower with a marker that it does not know to be committed
        does not know where the partition begins, and serves no reads until it does.
            A follower that was away may lack markers, and asks its leader (`log_start_offsets`).
Owns:   `before`, `told` and who has asked, per replica.
Source: docs/decisions/0006-deleting-records.md; KIP-107."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from strandline.model.ids import BrokerId, Epoch, Index, Offset
from strandline.protocol.errors import Error
from strandline.replication.leader.leadership import Leadership
from strandline.replication.replica.state import ReplicaState
from strandline.replication.shared import Shared
from strandline.replication.waiters import MarkWaiters

HIGH_WATERMARK = -1
"""Clients ask for this offset to delete everything that they can read."""
LOOKS = 4
"""How often a deletion checks its followers within a heartbeat's interval."""

DeletionDone = Callable[[Error], None]


class Contact(NamedTuple):
    """A time in which a follower hears the leader of one epoch without a gap."""

    leader: BrokerId
    epoch: Epoch
    number: int


class DeletingReplica(Protocol):
    """What a deletion asks of its replica."""

    leadership: Leadership | None

    @property
    def can_serve_reads(self) -> bool:
        """Whether the replica certainly leads, and knows everything committed."""

    def fail(self, error: Exception) -> None:
        """The log cannot be trusted any more."""


class Deletions:
    """See the module. `before`: the records below this offset are deleted, for good. `told`: the
    partition begins there or later, as a leader has reported; `reported_in`: when the last one
    did."""

    def __init__(
        self,
        replica: ReplicaState,
        owner: DeletingReplica,
        waiters: MarkWaiters,
        shared: Shared,
    ) -> None:
        self._replica = replica
        self._owner = owner
        self._waiters = waiters
        self._clock = shared.clock
        self._contacts = shared.contacts
        # The time between two checks of a deletion's followers.
        self._look_ms = max(1, shared.settings.heartbeat_interval_ms // LOOKS)
        self._commit = Index(-1)
        self.before = Offset(0)
        self.told = Offset(0)
        self.reported_in: Contact | None = None
        # The followers that have asked this leader where the partition begins, in this epoch of it.
        self._asked: tuple[Epoch, set[BrokerId]] = Epoch(-1), set()

    @property
    def are_settled(self) -> bool:
        """Whether all deletions in the log are known to be committed."""
        deletions = self._replica.log.deletions
        return not deletions or deletions[-1][0] <= self._commit

    def on_start_found(self, offset: Offset, contact: Contact) -> None:
        """The leader says that the partition begins at `offset`."""
        self.told = max(self.told, offset)
        self.reported_in = contact

    def note_asked(self, broker: BrokerId) -> None:
        """Clients are about to read from a follower of this leader; it relies on this answer."""
        epoch = self._replica.epoch
        if self._asked[0] != epoch:
            self._asked = epoch, set()
        self._asked[1].add(broker)

    def is_awaited(self, broker: BrokerId) -> bool:
        """Whether a deletion waits for this member's flush: clients may read from it, or it may
        lead. It does not wait for an observer that has yet to ask."""
        replica = self._replica
        has_asked = self._asked[0] == replica.epoch and broker in self._asked[1]
        return has_asked or broker in replica.configuration.all_voters

    def on_commit(self, commit: Index) -> None:
        """Everything up to `commit` is committed. Not called while the log has no deletion."""
        for index, before in reversed(self._replica.log.deletions):
            if index <= self._commit:
                break
            if index <= commit:
                self.before = max(self.before, before)
        assert commit >= self._commit, "commit goes up"
        self._commit = commit

    def delete(self, before: int, *, timeout_ms: int, done: DeletionDone) -> None:
        """Delete the records below `before`, or below the high watermark; `done` is called once.

        NOT_LEADER_OR_FOLLOWER, OFFSET_OUT_OF_RANGE above the high watermark, KAFKA_STORAGE_ERROR;
        REQUEST_TIMED_OUT where not all that live have it in time: it may be done, or not."""
        replica = self._replica
        if not replica.can_append or not self._owner.can_serve_reads:
            done(Error.NOT_LEADER_OR_FOLLOWER)
            return
        if before == HIGH_WATERMARK:
            before = replica.high_watermark
        if not 0 <= before <= replica.high_watermark:
            done(Error.OFFSET_OUT_OF_RANGE)
            return
        index = self._find(Offset(before))
        if index is None:
            try:
                index = self._append(Offset(before))
            except OSError:
                done(Error.KAFKA_STORAGE_ERROR)
                return
        _Waiting(self, index, deadline_ms=self._clock.monotonic_ms() + timeout_ms, done=done)

    def _append(self, before: Offset) -> Index:
        """Write the marker; its index. Raises OSError, and then nothing was appended."""
        assert self._owner.leadership is not None
        try:
            return self._owner.leadership.append_deletion(before)
        except OSError as error:
            if self._replica.log.failed:
                self._owner.fail(error)
            raise

    def _find(self, before: Offset) -> Index | None:
        """The entry by which the records below `before` are deleted already.

        What retention has taken here is not: other replicas may have it still."""
        log = self._replica.log
        if before <= self.before:
            return Index(log.start_index - 1)
        for index, deleted_before in log.deletions:
            if before <= deleted_before:
                return index
        return None

    # ---- for a deletion on its way ---------------------------------------------------------------

    def wait_commit(self, index: Index, callback: Callable[[Error], None]) -> None:
        """Call back once `index` is committed, or with an error if it may never be."""
        self._waiters.wait(index, self._replica.raft.commit, callback)

    def look_later(self, look: Callable[[], None], *, deadline_ms: int) -> bool:
        """Call `look` in a while; False where the deadline has come."""
        left_ms = deadline_ms - self._clock.monotonic_ms()
        if left_ms <= 0:
            return False
        self._clock.call_later(min(left_ms, self._look_ms), look)
        return True

    @property
    def can_go_on(self) -> bool:
        """Whether the replica still leads."""
        return self._owner.leadership is not None and self._replica.failed is None

    def all_have(self, index: Index) -> bool:
        """Whether every living member that clients may read has flushed the entry at `index`."""
        return all(
            progress.match_flushed >= index
            for peer, progress in self._replica.raft.progress.items()
            if self._contacts.is_peer_alive(peer) and self.is_awaited(peer)
        )


class _Waiting:
    """One deletion on its way, until all living members have it flushed."""

    __slots__ = ("_deadline_ms", "_deletions", "_done", "_index", "_is_committed", "_is_over")

    def __init__(
        self, deletions: Deletions, index: Index, *, deadline_ms: int, done: DeletionDone
    ) -> None:
        self._deletions = deletions
        self._index = index
        self._done = done
        self._is_committed = False
        self._is_over = False
        self._deadline_ms = deadline_ms
        deletions.wait_commit(index, self._on_commit)
        self._look()

    def _on_commit(self, error: Error) -> None:
        self._is_committed = not error
        if error:
            self._finish(error)
        else:
            self._look_again()

    def _look(self) -> None:
        """Look, and again in a while, until it is over."""
        self._look_again()
        if self._is_over:
            return
        if not self._deletions.look_later(self._look, deadline_ms=self._deadline_ms):
            self._finish(Error.REQUEST_TIMED_OUT)

    def _look_again(self) -> None:
        if not self._deletions.can_go_on:
            self._finish(Error.NOT_LEADER_OR_FOLLOWER)
        elif self._is_committed and self._deletions.all_have(self._index):
            self._finish(Error.NONE)

    def _finish(self, error: Error) -> None:
        if not self._is_over:
            self._is_over = True
            self._done(error)
