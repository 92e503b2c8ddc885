"""Steps the Raft core of one replica, and performs what it decides.

Why:    the core is pure; here its effects meet the log, the journal, the network and the waiting
        requests.
How:    every event goes through `step`. Effects are performed in order, each by the method that
        `PERFORM` names; `PersistState` and `ResetLog` suspend the group until the journal is
        durable, and events that come meanwhile wait. A log that fails takes the replica out of the
        group: it answers nothing more until its broker starts anew.
Owns:   the components that act on the replica's state, and the requests that wait.
Source: STYLE, rule 1; `raft.events` for what each effect asks; design sections 4 and 5."""

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Self

from strandline.base.disk import is_full
from strandline.base.errors import ProtocolError, RejectedError, StorageError
from strandline.model.ids import NO_BROKER, BrokerId, GroupId, Index
from strandline.protocol.errors import Error
from strandline.raft.core import Raft
from strandline.raft.events import (
    AppendEntries,
    AppendMarker,
    BecameFollower,
    BecameLeader,
    ConfigurationChanged,
    Effect,
    ElectionTimedOut,
    Event,
    FoundOutdated,
    MarksAdvanced,
    PeerRefused,
    PersistState,
    QuorumLost,
    Received,
    RejoinAsked,
    Rejoined,
    ReplicationReady,
    ResetLog,
    Send,
    SendPeerAppend,
    TruncateLog,
)
from strandline.raft.group.configuration import Configuration
from strandline.raft.messages import (
    AppendRequest,
    AppendResponse,
    Fenced,
    LeaderContact,
    Marks,
    Message,
    PeerAppend,
    ResetRequest,
    VoteRequest,
    VoteResponse,
)
from strandline.records.marker import build_configuration_marker, build_epoch_marker
from strandline.replication.host.election_priority import ElectionPriority
from strandline.replication.leader.appender import Appender
from strandline.replication.leader.leadership import Leadership
from strandline.replication.leader.leadership_transfer import LeadershipTransfer
from strandline.replication.liveness.lease import Lease
from strandline.replication.repair.damage import Damage
from strandline.replication.replica.delete_records import Deletions
from strandline.replication.replica.entries import Entries, encode_configuration
from strandline.replication.replica.flushes import Flushes
from strandline.replication.replica.log_maintenance import LogMaintenance
from strandline.replication.replica.replica_host import ReplicaHost
from strandline.replication.replica.snapshot_gate import SnapshotGate, lacks_snapshot
from strandline.replication.replica.state import ReplicaState
from strandline.replication.replica.tier import ReplicaTier
from strandline.replication.shared import Shared
from strandline.replication.waiters import MarkWaiters, Watchers
from strandline.storage.log.log import Log

_log = logging.getLogger("strandline.replication")


class ReplicaDriver(ReplicaState):
    """See the module."""

    host: "ReplicaHost[Self]"

    def __init__(
        self,
        shared: Shared,
        host: "ReplicaHost[Self]",
        *,
        group: GroupId,
        name: str,
        log: Log,
        raft: Raft,
        election_priority: ElectionPriority,
        base: Configuration,
        is_fresh: bool,
    ) -> None:
        super().__init__(
            self_id=shared.self_id,
            group=group,
            name=name,
            log=log,
            raft=raft,
            election_priority=election_priority,
            base=base,
            is_fresh=is_fresh,
        )
        clock = shared.clock
        self.host = host
        self.shared = shared
        self._clock = clock
        self._liveness = shared.liveness
        self._contacts = shared.contacts
        self._bound_votes = shared.bound_votes
        self._outbox = shared.outbox
        self._pending: deque[tuple[Event, Entries | None]] = deque()
        self.snapshots: SnapshotGate | None = None
        """Of what the log's records make; None: the log is all that there is."""
        self.leadership: Leadership | None = None
        """What exists only while this replica leads."""
        self.watchers = Watchers()
        self._commit_waiters = MarkWaiters()
        self._visible_waiters = MarkWaiters()
        self.lease = Lease(self, shared)
        self.deletions = Deletions(self, self, self._commit_waiters, shared)
        self.tier = ReplicaTier(
            self, self, self._commit_waiters, clock, wrong_buckets=shared.wrong_buckets
        )
        self.appender = Appender(
            self,
            self,
            lease=self.lease,
            deletions=self.deletions,
            tier=self.tier,
            commit_waiters=self._commit_waiters,
            visible_waiters=self._visible_waiters,
            clock=clock,
            memory=shared.memory,
        )
        self.transfer = LeadershipTransfer(self, self, self.appender, shared)
        self.damage = Damage(
            self,
            self,
            clock=clock,
            contacts=shared.contacts,
            suspect=partial(host.repairs.suspect, self),
        )
        self.flushes = Flushes(self, clock, self)
        self._maintenance = self._make_maintenance(host)

    def _make_maintenance(self: Self, host: "ReplicaHost[Self]") -> LogMaintenance:
        return LogMaintenance(
            self,
            self.deletions,
            self.tier,
            self.shared.durable,
            self,
            clock=self._clock,
            reserve=self.shared.reserve,
            flush=partial(self.flushes.request, may_wait=False),
            compact=partial(host.compactor.add, self),
        )

    # ---- what its components ask -----------------------------------------------------------------

    @property
    def can_serve_reads(self) -> bool:
        """Whether this leader may answer for the partition: it knows all commits, and no other
        replica can lead now."""
        # The core may have moved on already, while its new epoch is being made durable.
        if not self.is_serving or not self.raft.is_leader:
            return False
        return self.lease.is_held

    def in_sync(self) -> list[BrokerId]:
        """Voters whose broker is alive and, as far as the leader knows, not behind by more than a
        window, nor for longer than `lag_limit_ms`."""
        is_alive = self._contacts.is_alive
        followers = None if self.leadership is None else self.leadership.followers
        return [
            broker
            for broker in self.configuration.voters
            if broker == self.self_id
            or (is_alive(broker) and (followers is None or followers.is_in_step(broker)))
        ]

    def transfer_leadership(self, to: BrokerId) -> None:
        """Hand over to `to`, a voter; raises RejectedError where this replica does not lead."""
        self._require_leadership()
        self.transfer.to(to)

    def _require_leadership(self) -> None:
        if not self.is_leader:
            raise RejectedError(Error.NOT_LEADER_OR_FOLLOWER, leader_id=self.leader_id)

    def on_quorum_lost(self) -> None:
        """No quorum answers."""
        self.step(QuorumLost())

    def on_unreadable(self, error: OSError | StorageError) -> None:
        """Something in the log cannot be read: it is mended, and another replica leads meanwhile.

        A replica that is alone goes on with what can be read."""
        self.damage.on_read_error(error)

    def flush(self, *, may_wait: bool = False) -> None:
        """Make what is written durable and tell the core; see `flushes.Flushes.request`."""
        self.flushes.request(may_wait=may_wait)

    def report_marks_soon(self) -> None:
        """Send the marks to the followers soon, unless an append carries them before."""
        self.shared.mark_notices.add(self.group, self._report_marks)

    def _report_marks(self) -> None:
        if self.leadership is not None:
            self.leadership.sender.pump_all()

    # ---- deciding and doing ----------------------------------------------------------------------

    def on_message(self, sender: BrokerId, message: Message) -> None:
        """A Raft message came in; one with entries goes to `on_append`."""
        if type(message) is AppendResponse:
            self.on_append_response(sender, message)
            return
        if self.failed is not None:
            return
        if isinstance(message, LeaderContact) and message.epoch >= self.epoch:
            self.last_contact_ms = self._clock.monotonic_ms()
        gate = self.snapshots
        if gate and isinstance(message, ResetRequest) and lacks_snapshot(gate, message, self.raft):
            gate.fetch_before(sender, message)
            return
        self.step(Received(sender, message, self._is_bound(sender, message)))

    def on_append(
        self, sender: BrokerId, message: AppendRequest | PeerAppend, entries: Entries
    ) -> None:
        """An append came in, with these entries."""
        if self.failed is not None:
            return
        if type(message) is AppendRequest and message.epoch >= self.raft.state.epoch:
            self.last_contact_ms = self._clock.monotonic_ms()
        self.step(Received(sender, message, False), entries)

    def on_append_response(self, sender: BrokerId, response: AppendResponse) -> None:
        """A follower has more of the log, or refused an append."""
        if self.failed is not None:
            return
        if self.leadership is not None:
            if response.recovering:
                self._liveness.on_recovering(self)
            self.leadership.followers.on_response(sender, response)
        self.step(Received(sender, response, False))
        if self.leadership is not None:
            self.leadership.sender.resume(sender)

    def step(self, event: Event, entries: Entries | None = None) -> None:
        """Step the core and perform its effects, one event at a time.

        A replica without its snapshot is as one that does not run: it forgets nothing by that."""
        if self.failed is not None or self.lacks_snapshot:
            return
        if self.is_busy:
            self._pending.append((event, entries.copied() if entries is not None else None))
            return
        try:
            while True:
                if entries is None or self._has_place(entries):
                    self.is_busy = True
                    self._perform(self.raft.step(event), 0, entries)
                waiting = self._next_pending() if self._pending else None
                if waiting is None:
                    return
                event, entries = waiting
        except (OSError, StorageError) as error:
            self._on_undone(error)

    def _has_place(self, entries: Entries) -> bool:
        """Whether the entries of an append have the offsets that follow in the log."""
        try:
            entries.check_place(self.log)
        except ProtocolError as error:
            _log.warning("%s: dropped an append: %s", self.name, error)
            return False
        return True

    def _next_pending(self) -> tuple[Event, Entries | None] | None:
        """The next event that waited, judged by what is known now; None without one, or if busy."""
        while self._pending and not self.is_busy:
            event, entries = self._pending.popleft()
            # Heartbeats did not wait: their senders were told that no other replica gets a vote.
            if isinstance(event, Received):
                is_bound = self._is_bound(event.sender, event.message)
                event = Received(event.sender, event.message, is_bound)
            elif type(event) is ElectionTimedOut and self._bound_votes.is_bound(self, self.self_id):
                continue
            return event, entries
        return None

    def _is_bound(self, sender: BrokerId, message: object) -> bool:
        """Whether a leader counts on this replica's vote: not to go to the sender that asks for it,
        nor to the replica itself where the message says that it would be elected."""
        if isinstance(message, VoteRequest):
            return self._bound_votes.is_bound(self, sender)
        return isinstance(message, VoteResponse) and self._bound_votes.is_bound(self, self.self_id)

    def _perform(self, effects: list[Effect], start: int, entries: Entries | None) -> None:
        for position in range(start, len(effects)):
            effect = effects[position]
            if isinstance(effect, (PersistState, ResetLog)):
                rest = entries.copied() if entries is not None else None
                done = partial(self._resume, effects, position, rest)
                if isinstance(effect, PersistState):
                    self._liveness.moved_on(self)
                self.shared.durable.persist(self, effect, done)
                return
            PERFORM[type(effect)](self, effect, entries)
        self.is_busy = False

    def _resume(
        self, effects: list[Effect], position: int, entries: Entries | None, error: OSError | None
    ) -> None:
        """The journal has made this effect durable, or failed: go on where `_perform` stopped."""
        if self.failed is not None:
            return
        assert self.is_busy, "an effect waited for the journal, and all others with it"
        if error is not None:
            if is_full(error):
                self._on_undone(error)
            else:
                self.fail(error)
            return
        try:
            effect = effects[position]
            if isinstance(effect, ResetLog):
                self._reset_log(effect)
            self._perform(effects, position + 1, entries)
            waiting = self._next_pending()
        except (OSError, StorageError) as failure:
            self._on_undone(failure)
            return
        if waiting is not None:
            self.step(*waiting)

    def _on_undone(self, error: OSError | StorageError) -> None:
        """An effect could not be performed, so the core is ahead of the log or of the journal.
        Where these are as they were before (the disk is full; damage hides where to cut, and is
        mended), a fresh core goes on from there; otherwise the replica fails."""
        if self.log.failed:
            self.fail(error)
            return
        if isinstance(error, StorageError):
            self.damage.on_read_error(error)
        else:
            self.on_full(error)
        self.stop_leading()
        self.raft = self.shared.cores.rebuild(self)
        self._pending.clear()
        self.is_busy = False
        self._liveness.on_following(self)

    # ---- effects ---------------------------------------------------------------------------------

    def _send(self: Self, effect: Send, _: Entries | None) -> None:
        message = effect.message
        if isinstance(message, Fenced):
            self.host.fencing.on_fenced(self.group, message)
            return
        if isinstance(message, VoteResponse) and message.granted and not message.delegated_epoch:
            self._liveness.await_election(self)
        self._outbox.send(effect.to, self.group, message)  # type: ignore[arg-type]

    def _truncate_log(self, effect: TruncateLog, _: Entries | None) -> None:
        _log.info("%s: cutting the log from index %d", self.name, effect.from_index)
        self._fail_waiters()
        assert effect.from_index > self.marks.commit, "what is committed is never cut"
        self.log.truncate(effect.from_index)
        self.high_watermark = min(self.high_watermark, self.log.end_offset)

    def _append_entries(self, effect: AppendEntries, entries: Entries | None) -> None:
        assert entries is not None
        buffers, headers = entries.from_index(effect.first_index)
        self.log.append(buffers, headers)
        assert self.log.last_index >= effect.first_index
        self.flushes.request(may_wait=entries.may_wait)

    def _append_marker(self, effect: AppendMarker, _: Entries | None) -> None:
        assert self.leadership is not None
        log = self.log
        assert effect.index == log.last_index + 1
        now = self._clock.wall_ms()
        if effect.configuration is None:
            marker = build_epoch_marker(log.end_offset, effect.epoch, now)
        else:
            payload = encode_configuration(effect.configuration)
            marker = build_configuration_marker(log.end_offset, effect.epoch, payload, now)
        self.leadership.append_marker(
            bytes(marker), epoch=effect.epoch, configuration=effect.configuration
        )

    def _reset_log(self, effect: ResetLog, _: Entries | None = None) -> None:
        _log.info("%s: beginning anew at index %d", self.name, effect.start_index)
        self._fail_waiters()
        self.log.reset_to(
            effect.start_index, effect.start_offset, previous_epoch=effect.previous_epoch
        )
        self.tier.on_reset()
        self.high_watermark = max(self.high_watermark, effect.start_offset)

    def _marks_advanced(self, effect: MarksAdvanced, _: Entries | None) -> None:
        self.update_marks(effect.commit, effect.visible)

    def update_marks(self: Self, commit: Index, visible: Index) -> None:
        """commit or visible moved up."""
        log, appender = self.log, self.appender
        last = log.last_index
        assert self.marks.commit <= commit <= visible <= last, "marks go up, within the log"
        self.marks = Marks(commit, visible)
        offset = log.offset_of(Index(visible + 1)) if visible < last else log.end_offset
        if log.has_tier_or_deletions:
            self.deletions.on_commit(commit)
        self.tier.on_commit(commit)
        if self._commit_waiters.queue:
            self._commit_waiters.on_mark(commit)
        if self._visible_waiters.queue:
            self._visible_waiters.on_mark(visible)
        if appender.uncommitted_bytes or appender.held_bytes:
            appender.on_marks(commit, visible)
        if offset > self.high_watermark:
            self.high_watermark = offset
            if self.watchers.watches:
                self.watchers.notify()
        if self.leadership is not None:
            self.report_marks_soon()
            if not self.is_serving and self.raft.may_serve:
                self.is_serving = True
                self.host.on_serving(self, is_serving=True)
                if self.is_damaged:
                    self.damage.on_found()

    def clean(self) -> None:
        """Roll, remove and compact segments as the topic asks; the broker calls it now and then."""
        self._maintenance.run()

    def on_flushed(self) -> None:
        """More of the log is durable."""
        if self.tier.is_clean_due:
            self.tier.on_flushed()

    def _became_leader(self: Self, effect: BecameLeader, _: Entries | None) -> None:
        self.is_fresh = False
        self.is_leader = True
        assert self.leadership is None, "one leader state an epoch"
        assert not self.is_serving, "a new leader does not know all that is committed"
        self.leadership = Leadership(
            self,
            self.shared,
            self,
            self.flushes,
            on_room=self.appender.on_room,
            on_sent=partial(self.host.led.has_sent, self),
        )
        self.host.led.add(self)
        self.leading_since_ms = self._clock.monotonic_ms()
        self._liveness.on_leading(self, self.configuration.members)
        self.host.announce(self, effect.epoch)
        self.transfer.on_leader()
        for callback in self.host.on_elected:
            callback(self)

    def _became_follower(self: Self, effect: BecameFollower, _: Entries | None) -> None:
        self.leader_outlived = Index(-1)
        if effect.leader != NO_BROKER:
            self.is_fresh = False
            self.host.learn_leader(self.group, effect.epoch, effect.leader)
        if effect.transfer_target != NO_BROKER:
            self.transfer.begin()
        else:
            if self.transfer.is_under_way:
                self.transfer.on_follower(effect.leader)
            else:
                self.stop_leading()
            self._liveness.on_following(self)
        self.watchers.notify()

    def _replication_ready(self, effect: ReplicationReady, _: Entries | None) -> None:
        if self.leadership is not None:
            self.leadership.sender.pump(effect.peer)

    def _peer_refused(self, effect: PeerRefused, _: Entries | None) -> None:
        if self.leadership is not None:
            self.leadership.followers.on_refused(effect.peer)

    def _configuration_changed(self: Self, effect: ConfigurationChanged, _: Entries | None) -> None:
        _log.info(
            "%s: configuration %s at index %d%s",
            self.name,
            effect.configuration,
            effect.index,
            ", committed" if effect.committed else "",
        )
        if effect.committed:
            self.base = effect.configuration
            self._maintenance.persist_base()
            for callback in self.host.on_configuration:
                callback(self, effect.index, effect.configuration)
        self.lease.end()
        # The core may be ahead, and lead no more: its epoch is another one's by now.
        if self.leadership is not None and self.raft.is_leader:
            self._liveness.on_leading(self, self.configuration.members)

    def _serve_catchup(self: Self, effect: SendPeerAppend, _: Entries | None) -> None:
        self.host.peer_sender.add(self, effect.request)

    def _rejoin_asked(self: Self, effect: RejoinAsked, _: Entries | None) -> None:
        for callback in self.host.on_rejoin_asked:
            callback(self)

    def _found_outdated(self: Self, effect: FoundOutdated, _: Entries | None) -> None:
        _log.warning(
            "%s: its log is from before others held the partition without it: beginning anew",
            self.name,
        )
        for callback in self.host.on_stale_log:
            # Not from within the step that found it.
            self._clock.call_soon(partial(callback, self))

    def _rejoined(self, effect: Rejoined, _: Entries | None) -> None:
        _log.info("%s: whole again as of index %d", self.name, effect.index)
        self._maintenance.persist_base()
        self._liveness.moved_on(self)

    # ---- ending ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop for good; the log's files are closed."""
        self.stop_leading()
        self.flushes.close()
        self.failed = self.failed or RejectedError(Error.NOT_LEADER_OR_FOLLOWER, "closed")
        self.watchers.notify()
        self.log.close()

    def fail(self: Self, error: Exception) -> None:
        """The log or the journal cannot be trusted any more: take no further part."""
        if self.failed is not None:
            return
        self.failed = error
        _log.error("%s: the replica on this broker has failed: %s", self.name, error)
        self.stop_leading(Error.KAFKA_STORAGE_ERROR)
        self.host.on_replica_failed(self)
        self.watchers.notify()

    def stop_leading(self, error: Error = Error.NOT_LEADER_OR_FOLLOWER) -> None:
        """Lead no more; every request that waits gets an answer: this replica does not lead."""
        self.transfer.end()
        self.end_leadership()
        self.appender.fail(error)
        self._fail_waiters()

    def _fail_waiters(self) -> None:
        """Appended entries may be lost: every request that waits for one gets an error."""
        self._commit_waiters.fail()
        self._visible_waiters.fail()

    def end_leadership(self: Self) -> None:
        """Lead no more, whatever becomes of the requests that wait."""
        if self.leadership is not None:
            self.leadership.close()
            self.leadership = None
            self.is_leader = False
            self.host.led.remove(self)
        self.lease.end()
        if self.is_serving:
            self.is_serving = False
            self.host.on_serving(self, is_serving=False)

    def on_full(self: Self, error: OSError | StorageError) -> None:
        """The disk had no space for something; it is tried again."""
        self.host.on_full(self, error)


PERFORM: dict[type, Callable[..., None]] = {
    Send: ReplicaDriver._send,
    TruncateLog: ReplicaDriver._truncate_log,
    AppendEntries: ReplicaDriver._append_entries,
    AppendMarker: ReplicaDriver._append_marker,
    ResetLog: ReplicaDriver._reset_log,
    MarksAdvanced: ReplicaDriver._marks_advanced,
    BecameLeader: ReplicaDriver._became_leader,
    BecameFollower: ReplicaDriver._became_follower,
    ReplicationReady: ReplicaDriver._replication_ready,
    PeerRefused: ReplicaDriver._peer_refused,
    ConfigurationChanged: ReplicaDriver._configuration_changed,
    SendPeerAppend: ReplicaDriver._serve_catchup,
    RejoinAsked: ReplicaDriver._rejoin_asked,
    FoundOutdated: ReplicaDriver._found_outdated,
    Rejoined: ReplicaDriver._rejoined,
}
"""{type of an effect: the method that performs it}."""
