"""One Raft group on this broker: what the rest of the broker sees of a partition.

Why:    clients append and read, the broker moves and configures, other brokers send messages: each
        of these is an event for the core, or an answer from the state.
How:    `ReplicaState` is the data, `ReplicaDriver` steps the core and performs its effects, and
        `Replica` is what callers use.

            replicate --> Appender --> Leadership --> log, tail, core --> streams --> followers
            followers' acknowledgements, own flush --> core --> MarksAdvanced --> waiters, watchers
Owns:   nothing besides what it extends.
Source: design sections 4 and 5."""

import logging
from collections.abc import Callable, Collection, Sequence

from msgspec import UNSET

from strandline.base.errors import ApiError, RejectedError, StorageError
from strandline.model.cluster import Partition
from strandline.model.ids import NO_BROKER, BrokerId, Epoch, Index, Offset
from strandline.protocol.errors import Error
from strandline.raft.events import (
    ChangeConfiguration,
    CompactionEnabled,
    ElectionTimedOut,
    LogCompacted,
    PeerReset,
    RejoinAllowed,
)
from strandline.raft.group.configuration import PromisedQuorum
from strandline.raft.messages import (
    LeaderContact,
)
from strandline.raft.transitions import Role
from strandline.records.batch import BatchHeader
from strandline.replication.leader.requests import AppendResult, Request
from strandline.replication.replica import tombstones
from strandline.replication.replica.driver import ReplicaDriver
from strandline.replication.replica.tier import RemoteOffsetError
from strandline.replication.replica.verified_read import verified_bytes
from strandline.replication.waiters import Watch
from strandline.replication.wire import NOTHING_OUTLIVED
from strandline.storage.config import LogConfig
from strandline.storage.log.reads import RecordSlices

_log = logging.getLogger("strandline.replication")


class Replica(ReplicaDriver):
    """See the module."""

    # ---- what others ask -------------------------------------------------------------------------

    @property
    def is_waited_for(self) -> bool:
        """Whether clients wait for this replica: it leads, or has just handed over."""
        return self.is_leader or self.transfer.is_under_way or len(self._commit_waiters) > 0

    @property
    def log_start_offset(self) -> Offset:
        """Where the partition begins: the first offset that can be read, here or from a bucket."""
        return max(self.tier.start_offset, self.deletions.before, self.deletions.told)

    @property
    def local_log_start_offset(self) -> Offset:
        """The first offset that can be read from this broker's disk."""
        return max(self.log.start_offset, self.log_start_offset)

    def is_remote(self, offset: Offset) -> bool:
        """Whether the record at this offset of the partition is in a bucket only."""
        return self.log_start_offset <= offset < self.log.start_offset

    def epoch_at(self, offset: Offset) -> Epoch:
        """The epoch of the record at this offset of the partition."""
        if offset < self.log.start_offset:
            return self.tier.state.epoch_at(offset, local_start=self.log.start_offset)
        return self.log.epoch_of(self.log.index_of(offset))

    def epoch_end_offset(self, epoch: Epoch) -> tuple[Epoch, Offset]:
        """As `Log.epoch_end_offset`, for the whole partition: an epoch whose records are deleted
        ends where the partition begins."""
        known, end = self.tier.epoch_end_offset(epoch) or self.log.epoch_end_offset(epoch)
        return known, end if end < 0 else max(end, self.log_start_offset)

    @property
    def knows_start(self) -> bool:
        """Whether `log_start_offset` is where the partition begins, as far as can be known here."""
        if self.is_leader:
            return not self.tier.awaits_history  # It comes out of the buckets soon.
        return self.deletions.are_settled and self.tier.knows_start

    @property
    def outlived_offset(self) -> Offset:
        """Tombstones below this offset may go, as far as this replica knows: nothing that they
        delete is left in the log of a member, or in a bucket."""
        if self.log.config.remote_storage and not self.tier.is_known:
            return Offset(0)
        held = None if self.leadership is None else self.held_index
        outlived = tombstones.outlived_offset(self, held)
        clean_before = self.tier.state.clean_before
        return outlived if clean_before is None else min(outlived, clean_before)

    @property
    def compactable_end(self) -> Offset:
        """Compaction may go on up to here: below, everything is committed, and in enough buckets.
        A bucket that lacks a value and its successor would lose the key."""
        covered = self.tier.covered()
        end = self.committed_end
        return end if covered is None else min(end, covered.covered_end)

    def may_count(self, broker: BrokerId) -> bool:
        """For a leader: whether commits would go on if they needed `broker`: it is alive, has
        flushed something in this epoch, lost nothing since, and keeps up."""
        if broker == self.self_id or self.leadership is None:
            return self.leadership is not None
        progress = self.raft.progress.get(broker)
        return (
            progress is not None
            and not progress.is_recovering
            and progress.match_flushed >= 0
            and self._contacts.is_alive(broker)
            and self.leadership.followers.is_in_step(broker)
        )

    def is_ready_to_vote(self, broker: BrokerId) -> bool:
        """As `may_count`; a member that is no voter yet has flushed the present configuration, too.

        Before that its log may be of an earlier membership, and is reset: a change of voters that
        needs it would wait for it, and it for the change (`raft.follower.stale_log_reset`)."""
        if not self.may_count(broker):
            return False
        if broker == self.self_id or broker in self.configuration.all_voters:
            return True
        return self.raft.progress[broker].match_flushed >= self.raft.configuration_index

    def replicate(
        self,
        buffers: Sequence[memoryview | bytearray],
        headers: Sequence[BatchHeader],
        *,
        acks: int,
        done: Callable[[AppendResult], None],
    ) -> None:
        """Append validated batches; `done` is called once, by `acks` (0: any time, 1: appended
        here, -1: committed).

        The buffers belong to the replica from here on: the caller never changes them again."""
        if self.failed is not None or not (self.is_leader or self.transfer.is_under_way):
            done(AppendResult(Error.NOT_LEADER_OR_FOLLOWER, -1, -1))
            return
        size = len(buffers[0]) if len(buffers) == 1 else sum(map(len, buffers))
        if not self.appender.add(Request(buffers, headers, acks, done, size)):
            message = "too few replicas, or too much waits for them"
            done(AppendResult(Error.NOT_ENOUGH_REPLICAS, -1, -1, message))

    def refuse_writes(self, reason: str) -> None:
        """Answer producers with KAFKA_STORAGE_ERROR and `reason` while this broker leads; an empty
        reason ends it. Markers are written on."""
        self.appender.refusal = reason

    def read(self, offset: Offset, max_bytes: int) -> RecordSlices:
        """Records from `offset` on, up to the high watermark. Raises RemoteOffsetError for those in
        a bucket only, ApiError(OFFSET_OUT_OF_RANGE), and OSError or StorageError where the log
        cannot be read."""
        if self.failed is not None:
            raise ApiError(Error.KAFKA_STORAGE_ERROR, str(self.failed))
        if self.tier.awaits_history:
            raise RejectedError(Error.NOT_LEADER_OR_FOLLOWER, leader_id=self.leader_id)
        if offset < self.log_start_offset or offset > self.log.end_offset:
            raise ApiError(
                Error.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is not within {self.log_start_offset}..{self.high_watermark}",
            )
        if not self.knows_start:
            raise RejectedError(Error.NOT_LEADER_OR_FOLLOWER, leader_id=self.leader_id)
        if offset < self.log.start_offset:
            raise RemoteOffsetError(offset)
        try:
            return self.log.read_records(offset, max_bytes, self.high_watermark)
        except (OSError, StorageError) as error:
            self.on_unreadable(error)
            raise

    def read_verified(self, offset: Offset, max_bytes: int) -> bytes:
        """The same, as bytes whose checksums have been verified."""
        slices = self.read(offset, max_bytes)
        try:
            return verified_bytes(slices)
        except (OSError, StorageError) as error:
            self.on_unreadable(error)
            raise

    def watch(self, callback: Callable[[], None]) -> Watch:
        """Call `callback` once, when the high watermark or the leadership changes."""
        return self.watchers.add(callback)

    def hand_over(self, avoid: Collection[BrokerId] = ()) -> BrokerId:
        """Let another replica in sync lead, none of `avoid`, before this broker ends; which of
        those of the best rank depends on the group, so that not all go to the same broker.
        NO_BROKER where nothing is to be done, or no replica can do it."""
        return self.transfer.to_the_best(avoid)

    def change_configuration(
        self,
        *,
        voters: Sequence[BrokerId],
        observers: Sequence[BrokerId],
        min_insync: int = 1,
        version: int | None = None,
        floor: PromisedQuorum = UNSET,
    ) -> None:
        """Go to these members, by joint consensus; raises RejectedError where this replica does not
        lead. `version`, `floor`: see `ChangeConfiguration`."""
        self._require_leadership()
        change = ChangeConfiguration(tuple(voters), tuple(observers), min_insync, version, floor)
        self.step(change)

    def tell_compacted(self) -> None:
        """The log may have been compacted further, or mended where it was: let the leader know."""
        index = self.log.compacted_index
        if index != self.raft.log.compacted_index and self.failed is None:
            self.step(LogCompacted(index))

    # ---- what the broker feeds -------------------------------------------------------------------

    def stand_first(self) -> None:
        """Stand for election without waiting if no other leader can exist: in a new group, or as
        the only voter that it ever had. Another leader may hold promises from before this broker's
        restart."""
        may_be_first = self.is_fresh or self.was_always_alone
        if may_be_first and not self.is_leader and self.failed is None:
            self.on_election_timeout()

    def on_voter_opened(self) -> None:
        """A voter that missed a message of this replica is open now. In a new group it may have
        missed the request for its pre-vote: ask again at once. A pre-vote changes no state, so a
        second request is harmless."""
        if self.is_fresh and self.raft.role is Role.PRECANDIDATE and self.failed is None:
            self.on_election_timeout()

    def on_election_timeout(self) -> None:
        """No leader was heard."""
        if self.raft.leader != NO_BROKER:
            self.unheard_epoch = self.raft.epoch
        self.step(ElectionTimedOut())

    def on_leader_found(self, leader: BrokerId, epoch: Epoch) -> None:
        """Hear that `leader` leads in `epoch`."""
        self.on_message(leader, LeaderContact(epoch, Index(-1), Index(-1)))

    def on_peer_reset(self, peer: BrokerId) -> None:
        """Appends in flight to `peer` are lost, or a fresh connection is up."""
        if self.leadership is not None and peer in self.raft.progress:
            self.leadership.followers.on_reset(peer)
            self.step(PeerReset(peer))

    def set_compacted(self) -> None:
        """Compaction removes entries of this log by key, or has done so."""
        self.raft.step(CompactionEnabled())  # It has no effects.

    def on_outlived(self, index: Index) -> None:
        """`AppendHead.outlived` of the leader, which may know first that the topic is compacted."""
        self.leader_outlived = index
        if index >= 0 or index == NOTHING_OUTLIVED:
            self.set_compacted()

    def place(self, partition: Partition) -> None:
        """The controller says which replicas hold the log."""
        self.placed = partition.roles
        self.settled_version = partition.settled_version

    def configure(self, config: LogConfig) -> None:
        """The topic's configuration has changed."""
        self.log.config = config
        if config.has_been_compacted:
            self.set_compacted()

    def on_snapshot(self, before: Offset) -> None:
        """A snapshot is durable. Durable ones hold what the records below `before` make, and these
        may go. A replica that lacked a snapshot takes part from now on."""
        self.snapshot_offset = before
        if self.failed is not None:
            return
        self._maintenance.roll()
        gate = self.snapshots
        if self.lacks_snapshot and gate and gate.durable_offset >= self.log.start_offset:
            self.lacks_snapshot = False

    def allow_rejoin(self, rejoined: int) -> None:
        """The controller has noted, as this, that the replica takes part again."""
        self.rejoined = rejoined
        # The copied entries belong to this data directory: a restart goes on with them.
        self._maintenance.persist_base()
        self.step(RejoinAllowed())
