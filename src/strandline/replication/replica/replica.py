"""One Raft group on this broker: performs what the core decides, and is what the rest of the broker
sees of a partition.

Why:    the core is pure; here its effects meet the log, the journal, the network and the waiting
        requests.
How:    every event goes through `step`. Effects are performed in order; `PersistState` and
        `ResetLog` suspend the group until the journal is durable, and events that come meanwhile
        wait. A log that fails takes the replica out of the group: it answers nothing more until its
        broker starts anew.

            replicate --> Appender --> ReplicaSink --> log, tail, core --> streams --> followers
            followers' acknowledgements, own flush --> core --> MarksAdvanced --> waiters, watchers
Owns:   the log, the core, and whoever waits for them.
Source: STYLE, rule 1; design sections 4 and 5."""

import logging
from collections import deque
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import UNSET

from strandline.base.disk import is_full
from strandline.base.errors import ApiError, ProtocolError, RejectedError, StorageError
from strandline.model.cluster import Partition, Roles
from strandline.model.ids import NO_BROKER, BrokerId, Epoch, GroupId, Index, Offset
from strandline.protocol.errors import Error
from strandline.raft.core import Raft
from strandline.raft.events import (
    ChangeConfiguration,
    CompactionEnabled,
    Effect,
    ElectionTimedOut,
    Event,
    LogCompacted,
    PeerReset,
    PersistState,
    QuorumLost,
    Received,
    RejoinAllowed,
    ResetLog,
)
from strandline.raft.group.configuration import Configuration, Floor
from strandline.raft.messages import (
    NO_MARKS,
    AppendRequest,
    AppendResponse,
    LeaderContact,
    LentAppend,
    Marks,
    VoteRequest,
    VoteResponse,
)
from strandline.records.batch import BatchHeader
from strandline.replication.host.election_priority import ElectionPriority
from strandline.replication.host.group_spec import LAG_MS_MAX
from strandline.replication.leader.appender import Appender, AppendResult, Request
from strandline.replication.leader.hand_over import HandOver
from strandline.replication.leader.leadership import Leading
from strandline.replication.liveness.lease import Lease
from strandline.replication.repair.damage import Damage
from strandline.replication.replica.delete_records import Deletions
from strandline.replication.replica.effects import PERFORM
from strandline.replication.replica.entries import Entries
from strandline.replication.replica.flushes import Flushes
from strandline.replication.replica.log_maintenance import Cleaning
from strandline.replication.replica.sink import ReplicaSink
from strandline.replication.replica.verified_read import proved_bytes
from strandline.replication.waiters import MarkWaiters, Watch, Watchers
from strandline.replication.wire import NOTHING_OUTLIVED
from strandline.storage.config import LogConfig
from strandline.storage.log.log import Log
from strandline.storage.log.reads import RecordSlices

if TYPE_CHECKING:
    from strandline.replication.host.replication import Replication

_log = logging.getLogger("strandline.replication")


class Replica:
    """See the module. Offsets given out are Kafka offsets; `high_watermark` and `log_end_offset`
    are exclusive."""

    def __init__(
        self,
        *,
        host: "Replication",
        group: GroupId,
        name: str,
        log: Log,
        raft: Raft,
        election_priority: ElectionPriority,
        base: Configuration,
        is_fresh: bool,
    ) -> None:
        self.host = host
        self.group = group
        self.name = name
        self.log = log
        self.raft = raft
        self.self_id = host.self_id
        self.election_priority = election_priority
        self.is_spared = False
        """Whether others should be elected: this broker is about to go down."""
        self.placed = Roles(())
        """Who holds the log when all are well: what they lack is no copy for a move."""
        self.settled_version = 0
        """See `Partition.settled_version`, as far as it was heard here."""
        self.base = base
        self.rejoined = 0
        """When it was noted last in this life that it takes part again; 0 for never."""
        self.is_fresh = is_fresh
        self.has_restarted = not is_fresh
        self.damage = Damage(self)
        self.cleaning = Cleaning(self)
        self.handing_over = HandOver(self)
        self.failed: Exception | None = None
        self.told_outlived = Index(-1)  # See `hear_outlived`.
        self.heard_ms = 0
        self.unheard_epoch = Epoch(0)
        """The last whose leader was known here, and then not heard for an election timeout."""
        self.timeout_ms = 0
        self.stand_after_ms = 0
        self.look_ms = 0
        """Before then the liveness need not look whether to stand: what counts only moves on."""
        self.leading_since_ms = 0
        self.lag_ms_max = LAG_MS_MAX
        """The topic's `replica.lag.time.max.ms`."""
        self.high_watermark = log.start_offset
        self.marks = NO_MARKS
        """commit and visible as far as the log has what they speak of: the core may be ahead of it,
        and its decisions may come to nothing."""
        self.deletions = Deletions(self)
        self.waiters = MarkWaiters()
        self.cache_waiters = MarkWaiters()
        self.watchers = Watchers()
        self.sink = ReplicaSink(self)
        self.appender = Appender(self.sink, host.clock.call_soon, host.memory)
        self.leading: Leading | None = None
        self.is_serving = False
        self.lease = Lease(self)
        self._busy = False
        self._pending: deque[tuple[Event, Entries | None]] = deque()
        self.flushes = Flushes(self)

    # ---- what others ask -------------------------------------------------------------------------

    @property
    def is_leader(self) -> bool:
        """Whether it leads its epoch; it may not know all that is committed yet (`is_serving`)."""
        return self.leading is not None

    @property
    def is_waited_for(self) -> bool:
        """Whether clients wait for this replica: it leads, or has just handed over."""
        return self.is_leader or self.handing_over.is_under_way or len(self.waiters) > 0

    @property
    def is_preferred(self) -> bool:
        """Whether elections should favour this replica."""
        return self.election_priority.preferred == self.self_id

    @property
    def is_only_voter(self) -> bool:
        """Whether nobody else can lead, nor has a vote."""
        return self.configuration.all_voters == (self.self_id,)

    @property
    def was_always_alone(self) -> bool:
        """Whether nobody else has had a vote, as far as is known here."""
        known = (self.base, *(one for _, one in self.raft.log.configurations))
        return all(one.all_voters == (self.self_id,) for one in known)

    @property
    def leader_id(self) -> BrokerId:
        """The leader as far as known here, or NO_BROKER."""
        return NO_BROKER if self.failed is not None else self.raft.leader

    @property
    def epoch(self) -> Epoch:
        """The epoch of this replica."""
        return self.raft.epoch

    @property
    def configuration(self) -> Configuration:
        """The configuration in force."""
        return self.raft.configuration

    @property
    def log_start_offset(self) -> Offset:
        """The first offset that can be read."""
        return max(self.log.start_offset, self.deletions.before, self.deletions.told)

    @property
    def knows_start(self) -> bool:
        """Whether `log_start_offset` is where the partition begins, as far as can be known here."""
        return self.leading is not None or self.deletions.are_settled

    @property
    def log_end_offset(self) -> Offset:
        """The offset that the next record will get here."""
        return self.log.end_offset

    @property
    def committed_end(self) -> Offset:
        """Below here all records are committed, and in this log; 0 while nobody can tell."""
        log = self.log
        if self._busy:  # The core is ahead of the log, which may have to be cut.
            return Offset(0)
        commit = self.raft.commit
        end = log.end_offset if commit >= log.last_index else log.offset_of(Index(commit + 1))
        return min(end, self.high_watermark)

    @property
    def can_serve_reads(self) -> bool:
        """Whether this leader may answer for the partition: it knows all commits, and nobody else
        can lead now."""
        # The core may have moved on already, while its new epoch is being made durable.
        if not self.is_serving or not self.raft.is_leader:
            return False
        return self.lease.is_held

    def in_sync(self) -> list[BrokerId]:
        """Voters whose broker is alive and, as far as the leader knows, not behind by more than a
        window, nor for longer than `lag_limit_ms`."""
        if self.leading is None:
            return [b for b in self.configuration.voters if b == self.self_id or self._alive(b)]
        return [
            broker
            for broker in self.configuration.voters
            if broker == self.self_id or (self._alive(broker) and self.leading.is_in_step(broker))
        ]

    @property
    def lag_limit_ms(self) -> int:
        """Who lacks something for so long is not in sync; what nobody waits for may be flushed so
        much later."""
        return self.lag_ms_max + self.log.config.flush_ms

    def has_no_way_back(self, broker: BrokerId) -> bool:
        """For a leader: whether `broker` has lost its log, and cannot be told yet when it may take
        part again: for that others are needed."""
        progress = self.raft.progress.get(broker)
        return progress is not None and progress.is_recovering and progress.rejoin_at < 0

    def may_count(self, broker: BrokerId) -> bool:
        """For a leader: whether commits would go on if they needed `broker`: it is alive, has
        flushed something of this epoch, lost nothing since, and keeps up."""
        if broker == self.self_id or self.leading is None:
            return self.leading is not None
        progress = self.raft.progress.get(broker)
        return (
            progress is not None
            and not progress.is_recovering
            and progress.match_flushed >= 0
            and self._alive(broker)
            and self.leading.is_in_step(broker)
        )

    def is_ready_to_vote(self, broker: BrokerId) -> bool:
        """As `may_count`; who is no voter yet has flushed the present configuration, too.

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
        if self.failed is not None or not (self.is_leader or self.handing_over.is_under_way):
            done(AppendResult(Error.NOT_LEADER_OR_FOLLOWER, -1, -1))
            return
        size = len(buffers[0]) if len(buffers) == 1 else sum(map(len, buffers))
        if not self.appender.add(Request(buffers, headers, acks, done, size)):
            message = "too few replicas, or too much waits for them"
            done(AppendResult(Error.NOT_ENOUGH_REPLICAS, -1, -1, message))

    def read(self, offset: Offset, max_bytes: int) -> RecordSlices:
        """Records from `offset` on, up to the high watermark. Raises ApiError(OFFSET_OUT_OF_RANGE),
        and OSError or StorageError where the log cannot be read."""
        if self.failed is not None:
            raise ApiError(Error.KAFKA_STORAGE_ERROR, str(self.failed))
        if offset < self.log_start_offset or offset > self.log.end_offset:
            raise ApiError(
                Error.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is not within {self.log_start_offset}..{self.high_watermark}",
            )
        if not self.knows_start:
            raise RejectedError(Error.NOT_LEADER_OR_FOLLOWER, leader_id=self.leader_id)
        try:
            return self.log.read_records(offset, max_bytes, self.high_watermark)
        except (OSError, StorageError) as error:
            self.on_unreadable(error)
            raise

    def read_proved(self, offset: Offset, max_bytes: int) -> bytes:
        """The same, as bytes whose checksums have been checked."""
        slices = self.read(offset, max_bytes)
        try:
            return proved_bytes(slices)
        except (OSError, StorageError) as error:
            self.on_unreadable(error)
            raise

    def on_unreadable(self, error: OSError | StorageError) -> None:
        """Something in the log cannot be read: it is mended, and another replica leads meanwhile.

        A replica that is alone goes on with what can be read."""
        self.damage.met(error)

    def hand_over(self, avoid: Collection[BrokerId] = ()) -> BrokerId:
        """Let another replica in sync lead, none of `avoid`, before this broker ends; which of
        those of the best rank depends on the group, so that not all go to the same broker.
        NO_BROKER where nothing is to be done, or nobody is there to do it."""
        return self.handing_over.to_the_best(avoid)

    def watch(self, callback: Callable[[], None]) -> Watch:
        """Call `callback` once, when the high watermark or the leadership changes."""
        return self.watchers.add(callback)

    def transfer_leadership(self, to: BrokerId) -> None:
        """Hand over to `to`, a voter; raises RejectedError where this replica does not lead."""
        self._require_leadership()
        self.handing_over.to(to)

    def change_configuration(
        self,
        *,
        voters: Sequence[BrokerId],
        observers: Sequence[BrokerId],
        min_insync: int = 1,
        version: int | None = None,
        floor: Floor = UNSET,
    ) -> None:
        """Go to these members, by joint consensus; raises RejectedError where this replica does not
        lead. `version`, `floor`: see `ChangeConfiguration`."""
        self._require_leadership()
        change = ChangeConfiguration(tuple(voters), tuple(observers), min_insync, version, floor)
        self.step(change)

    def clean(self) -> None:
        """Roll, let go, compact as the topic asks; called now and then by the broker."""
        self.cleaning.run()

    def tell_compacted(self) -> None:
        """The log may have been compacted further, or mended where it was: let the leader know."""
        index = self.log.compacted_index
        if index != self.raft.log.compacted_index and self.failed is None:
            self.step(LogCompacted(index))

    @property
    def is_busy(self) -> bool:
        """Whether an effect of the core waits for the journal, and all that follow with it."""
        return self._busy

    # ---- what the host feeds ---------------------------------------------------------------------

    def on_election_timeout(self) -> None:
        """No leader was heard."""
        if self.raft.leader != NO_BROKER:
            self.unheard_epoch = self.raft.epoch
        self.step(ElectionTimedOut())

    def on_quorum_lost(self) -> None:
        """No quorum answers."""
        self.step(QuorumLost())

    def on_message(self, sender: BrokerId, message: object, entries: Entries | None = None) -> None:
        """A Raft message came in; `entries` go with an AppendRequest."""
        if self.failed is not None:
            return
        if isinstance(message, (AppendRequest, LeaderContact)) and message.epoch >= self.epoch:
            self.heard_ms = self.host.clock.monotonic_ms()
        elif isinstance(message, AppendResponse) and self.leading is not None:
            if message.recovering:
                self.host.liveness.on_recovering(self)
            self.leading.on_response(sender, message)
        is_bound = self._is_bound(sender, message)
        self.step(Received(sender, message, is_bound), entries)  # type: ignore[arg-type]
        if isinstance(message, AppendResponse) and self.leading is not None:
            self.leading.resume(sender)

    def on_peer_reset(self, peer: BrokerId) -> None:
        """What was in flight to `peer` is lost, or a fresh connection is up."""
        if self.leading is not None and peer in self.raft.progress:
            self.leading.on_reset(peer)
            self.step(PeerReset(peer))

    def set_compacted(self) -> None:
        """Compaction removes entries of this log by key, or has done so."""
        self.raft.step(CompactionEnabled())  # It has no effects.

    def hear_outlived(self, index: Index) -> None:
        """`AppendHead.outlived` of the leader, which may know first that the topic is compacted."""
        self.told_outlived = index
        if index >= 0 or index == NOTHING_OUTLIVED:
            self.set_compacted()

    def place(self, partition: Partition) -> None:
        """The controller says who holds the log."""
        self.placed = partition.roles
        self.settled_version = partition.settled_version

    def configure(self, config: LogConfig) -> None:
        """The topic's configuration has changed."""
        self.log.config = config
        if config.has_been_compacted:
            self.set_compacted()

    def allow_rejoin(self, rejoined: int) -> None:
        """It is noted, as this, that it takes part again."""
        self.rejoined = rejoined
        # What is copied is of this data directory: after a restart it is gone on with.
        self.host.persist_base(self)
        self.step(RejoinAllowed())

    # ---- deciding and doing ----------------------------------------------------------------------

    def step(self, event: Event, entries: Entries | None = None) -> None:
        """Step the core and perform its effects, one event at a time."""
        if self.failed is not None:
            return
        if self._busy:
            self._pending.append((event, entries.copied() if entries is not None else None))
            return
        try:
            self._begin(event, entries)
            self._step_pending()
        except (OSError, StorageError) as error:
            self._on_undone(error)

    def _begin(self, event: Event, entries: Entries | None) -> None:
        if entries is not None and isinstance(event, Received):
            message = event.message
            request = message.request if isinstance(message, LentAppend) else message
            assert isinstance(request, AppendRequest)
            try:
                entries.check_place(request, self.log)
            except ProtocolError as error:
                _log.warning("%s: dropped an append of %d: %s", self.name, event.sender, error)
                return
        self._busy = True
        self._perform(self.raft.step(event), 0, entries)

    def _step_pending(self) -> None:
        liveness = self.host.liveness
        while self._pending and not self._busy:
            event, entries = self._pending.popleft()
            # Heartbeats did not wait: their senders were told that nobody else gets a vote.
            if isinstance(event, Received):
                is_bound = self._is_bound(event.sender, event.message)
                event = Received(event.sender, event.message, is_bound)
            elif isinstance(event, ElectionTimedOut) and liveness.is_bound(self, self.self_id):
                continue
            self._begin(event, entries)

    def _is_bound(self, sender: BrokerId, message: object) -> bool:
        """Whether a leader counts on it that this replica votes neither for who asks for that, nor
        for itself where it is told that it would be elected."""
        if isinstance(message, VoteRequest):
            return self.host.liveness.is_bound(self, sender)
        return isinstance(message, VoteResponse) and self.host.liveness.is_bound(self, self.self_id)

    def _perform(self, effects: list[Effect], start: int, entries: Entries | None) -> None:
        for position in range(start, len(effects)):
            effect = effects[position]
            if isinstance(effect, (PersistState, ResetLog)):
                rest = entries.copied() if entries is not None else None
                self.host.persist(self, effect, partial(self._resume, effects, position, rest))
                return
            PERFORM[type(effect)](self, effect, entries)
        self._busy = False

    def _resume(
        self, effects: list[Effect], position: int, entries: Entries | None, error: OSError | None
    ) -> None:
        """What the journal needs of this effect is durable: go on where `_perform` stopped."""
        if self.failed is not None:
            return
        if error is not None:
            if is_full(error):
                self._on_undone(error)
            else:
                self.fail(error)
            return
        try:
            effect = effects[position]
            if isinstance(effect, ResetLog):
                PERFORM[ResetLog](self, effect, entries)
            self._perform(effects, position + 1, entries)
            self._step_pending()
        except (OSError, StorageError) as failure:
            self._on_undone(failure)

    def _on_undone(self, error: OSError | StorageError) -> None:
        """An effect could not be performed, so the core is ahead of the log or of the journal.
        Where these are as they were before (the disk is full; damage hides where to cut, and is
        mended), a fresh core goes on from there; otherwise it is over."""
        if self.log.failed:
            self.fail(error)
            return
        if isinstance(error, StorageError):
            self.damage.met(error)
        else:
            self.host.on_full(self, error)
        self.stop_leading()
        self.raft = self.host.rebuild(self)
        self._pending.clear()
        self._busy = False
        self.host.liveness.on_following(self)

    def flush(self, *, may_wait: bool = False) -> None:
        """Make what is written durable and tell the core; see `flushes.Flushes.request`."""
        self.flushes.request(may_wait=may_wait)

    def close(self) -> None:
        """Stop for good; the log's files are closed."""
        self.stop_leading()
        self.flushes.close()
        self.failed = self.failed or RejectedError(Error.NOT_LEADER_OR_FOLLOWER, "closed")
        self.watchers.notify()
        self.log.close()

    def fail(self, error: Exception) -> None:
        """The log or the journal cannot be trusted any more: take no further part."""
        if self.failed is not None:
            return
        self.failed = error
        _log.error("%s: the replica on this broker has failed: %s", self.name, error)
        self.stop_leading(Error.KAFKA_STORAGE_ERROR)
        self.host.on_replica_failed(self)
        self.watchers.notify()

    def stop_leading(self, error: Error = Error.NOT_LEADER_OR_FOLLOWER) -> None:
        """Tell everyone who waits that this replica leads no more."""
        self.handing_over.end()
        self.end_leadership()
        self.appender.fail(error)
        self.fail_waiters()

    def fail_waiters(self) -> None:
        """What was appended may be lost: tell everyone who waits for it."""
        self.waiters.fail()
        self.cache_waiters.fail()

    def end_leadership(self) -> None:
        """Lead no more, whatever becomes of those who wait."""
        if self.leading is not None:
            self.leading.close()
            self.leading = None
            self.host.led.remove(self)
        self.lease.end()
        if self.is_serving:
            self.is_serving = False
            self.host.on_serving(self, False)

    def update_marks(self, commit: Index, visible: Index) -> None:
        """commit or visible moved up."""
        self.marks = Marks(commit, visible)
        offset = self.log.end_offset
        if visible < self.log.last_index:
            offset = self.log.offset_of(Index(visible + 1))
        self.deletions.on_commit(commit)
        self.waiters.on_mark(commit)
        self.cache_waiters.on_mark(visible)
        self.appender.on_marks(commit, visible)
        if offset > self.high_watermark:
            self.high_watermark = offset
            self.watchers.notify()
        if self.leading is not None:
            self.host.tell_soon(self)
            if not self.is_serving and self.raft.may_serve:
                self.is_serving = True
                self.host.on_serving(self, True)
                if self.damage.is_known:
                    self.damage.found()

    # ---- small things ----------------------------------------------------------------------------

    def _alive(self, broker: BrokerId) -> bool:
        return self.host.liveness.is_alive(broker)

    def _require_leadership(self) -> None:
        if self.leading is None:
            raise RejectedError(Error.NOT_LEADER_OR_FOLLOWER, leader_id=self.leader_id)
