"""All Raft groups of one broker: opens and closes them, ticks them, sends their messages.

Why:    groups share what a broker has once: connections, heartbeats, the state journal, memory, the
        clock.
How:    control messages of one pass leave together at its end (control_outbox.py); record batches
        leave at once, on the bulk lane. Incoming messages are dispatched by inbound.py. One tick
        serves all timers.
Owns:   the replicas; one per broker.
Source: design section 5."""

import logging
import random
from collections.abc import Callable
from functools import partial
from typing import Protocol

import msgspec

from strandline.base.clock import Clock, Timer
from strandline.base.disk import Disk
from strandline.base.network import Lane, Network
from strandline.model.ids import CONTROLLER_GROUP, NO_BROKER, BrokerId, Epoch, GroupId, Index
from strandline.network.calls import Calls
from strandline.raft.core import Raft
from strandline.raft.events import CompactionEnabled, PersistState, ResetLog
from strandline.raft.follower.stale_log_reset import OUTDATED
from strandline.raft.group.configuration import Configuration
from strandline.raft.group.log_shape import LogShape
from strandline.raft.messages import NO_MARKS, Marks, Message
from strandline.replication.catchup.peer_catchup import PeerCatchup
from strandline.replication.catchup.throttle import RecoveryThrottle
from strandline.replication.host.bootstrap import GroupBootstrap
from strandline.replication.host.control_outbox import ControlMail
from strandline.replication.host.early_appends import EarlyAppends
from strandline.replication.host.group_spec import GroupSpec
from strandline.replication.host.inbound import Inbound, meet_leader
from strandline.replication.host.leaders import Leaders
from strandline.replication.host.led_groups import LedGroups
from strandline.replication.host.nearness import Nearness
from strandline.replication.host.opening import Opening
from strandline.replication.host.removal import ReplicaRemoval
from strandline.replication.leader.forwarding import Relaying
from strandline.replication.leader.send_queues import BulkQueues
from strandline.replication.liveness.fencing import Fencing
from strandline.replication.liveness.liveness import Liveness
from strandline.replication.memory_budget import MemoryBudget
from strandline.replication.repair.gap_repair_client import GapRepairClient
from strandline.replication.replica.compactor import Compactor
from strandline.replication.replica.log_start_offsets import Starts
from strandline.replication.replica.replica import Replica
from strandline.replication.settings import ReplicationSettings
from strandline.replication.wire import Kind, LeaderEntry, encode_control
from strandline.storage.log.log import Log
from strandline.storage.reserve import Reserve
from strandline.storage.state_journal import UNKNOWN, GroupState, StateJournal

JOURNAL = "state.journal"
LATE_TICK_FACTOR = 3
FULL_INTERVAL_MS = 10_000
"""The shortest time between two log lines about a full disk."""
TELL_DELAY_MS = 5

_log = logging.getLogger("strandline.replication")
_configurations = msgspec.json.Decoder(Configuration)


class OnLeadership(Protocol):
    """Called when a replica here starts or stops answering for its partition."""

    def __call__(self, replica: Replica, /, *, is_leading: bool) -> None: ...


class Replication:
    """See the module. Callbacks: `on_forgotten` before a replica is removed, `on_outdated` when a
    log must be copied anew."""

    def __init__(
        self,
        *,
        self_id: BrokerId,
        clock: Clock,
        rng: random.Random,
        disk: Disk,
        network: Network,
        settings: ReplicationSettings,
        data_directory: str,
    ) -> None:
        self.self_id = self_id
        self.clock = clock
        self.disk = disk
        self.network = network
        self.settings = settings
        self.replicas: dict[GroupId, Replica] = {}
        self.led = LedGroups()
        self.candidacy_count = 0
        """Elections in which a replica here was a candidate."""
        self.memory = MemoryBudget(settings.memory_bytes_max)
        self.queues = BulkQueues(clock, limit_bytes=settings.queue_bytes_max)
        self.throttle = RecoveryThrottle(
            clock,
            bytes_per_s=settings.recovery_bytes_per_s,
            cross_region_bytes_per_s=settings.recovery_cross_region_bytes_per_s,
        )
        self.nearness = Nearness()
        self.peer_catchup = PeerCatchup(self)
        self.relaying = Relaying(self)
        self.compactor = Compactor(clock, slice_bytes=settings.compaction_slice_bytes)
        self.on_elected: list[Callable[[Replica], None]] = []
        self.on_leadership: list[OnLeadership] = []
        self.on_leader_known: list[Callable[[GroupId], None]] = []
        self.on_failed: list[Callable[[Replica], None]] = []
        self.on_configuration: list[Callable[[Replica, Index, Configuration], None]] = []
        """Called when a configuration is committed, with its index."""
        self.on_rejoin_asked: list[Callable[[Replica], None]] = []
        """Called for replicas that lost their disk. While it is empty, they ask no controller."""
        self.on_forgotten: list[Callable[[GroupId], None]] = []
        self.on_outdated: list[Callable[[Replica], None]] = []
        self.leaders = Leaders(self._on_leader_known)
        session = rng.getrandbits(62) + 1
        self.calls = Calls(self._send_call, first_number=session)
        self.repairs = GapRepairClient(self)
        self.starts = Starts(self)
        self.fencing = Fencing(self)
        self.group_bootstrap = GroupBootstrap(self, session)
        self.early_appends = EarlyAppends(self)
        self.liveness = Liveness(
            clock=clock,
            rng=rng,
            settings=settings,
            session=session,
            replicas=self.replicas,
            remembered=self._remembered,
        )
        self._data_directory = data_directory
        self.reserve = Reserve(clock, disk, data_directory, size_bytes=settings.reserve_bytes)
        self._journal: StateJournal | None = None
        self._opening: Opening | None = None
        self._forgetting: ReplicaRemoval | None = None
        self._peers: dict[BrokerId, None] = {}
        self._to_tell: dict[GroupId, Replica] = {}
        self._mail = ControlMail(clock, network, self._peers)
        self._timer: Timer | None = None
        self._ticked_ms = self._heartbeat_due_ms = self._full_silence_until_ms = 0
        self._stopped = False
        self.inbound = Inbound(self)
        network.bind(self.inbound)

    # ---- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Open the journal and start to tick; groups are opened one by one."""
        self.disk.make_directories(f"{self._data_directory}/logs")
        self.reserve.start()
        self._journal = StateJournal.open(
            self.disk,
            f"{self._data_directory}/{JOURNAL}",
            clock=self.clock,
            borrow=partial(self.reserve.lend, "the journal of votes"),
        )
        self._opening = Opening(self, self._journal, f"{self._data_directory}/logs")
        self._forgetting = ReplicaRemoval(self, self._journal)
        self._ticked_ms = self.clock.monotonic_ms()
        self._tick_later()

    def stop(self) -> None:
        """Close the groups; nothing is sent from now on."""
        self._stopped = True
        self.inbound.stop()
        self._mail.stop()
        if self._timer is not None:
            self._timer.cancel()
        self.calls.stop()
        self.compactor.stop()
        self.repairs.stop()
        self.starts.stop()
        self.throttle.stop()
        self.reserve.stop()
        self.peer_catchup.stop()
        self.relaying.stop()
        if self._opening is not None:
            self._opening.abandon()
        for group in list(self.replicas):
            self.close_group(group)
        if self._journal is not None:
            self._journal.close()

    def set_peer(self, peer: BrokerId, host: str, port: int) -> None:
        """Set a broker's address."""
        if peer != self.self_id:
            self._peers[peer] = None
            self.network.set_peer(peer, host, port)

    def remove_peer(self, peer: BrokerId) -> None:
        """Drop all connections and state of a broker that has left."""
        self._peers.pop(peer, None)
        self.network.remove_peer(peer)
        self.liveness.forget(peer)

    def open_group(self, spec: GroupSpec) -> Replica:
        """Open or create the replica of a group here. Raises OSError, StorageError."""
        return self.opening.open_one(spec)

    def space(self) -> tuple[int, int]:
        """(bytes used, bytes left) of the disk with the data directory. Raises OSError."""
        where = self._data_directory
        return self.disk.used_bytes(where), self.disk.free_bytes(where)

    @property
    def opening(self) -> Opening:
        """Opens several groups together."""
        assert self._opening is not None
        return self._opening

    @property
    def forgetting(self) -> ReplicaRemoval:
        """Removes groups that this broker no longer holds."""
        assert self._forgetting is not None
        return self._forgetting

    def distrust(
        self, group: GroupId, base: Configuration, done: Callable[[OSError | None], None]
    ) -> None:
        """Note durably that the log of a closed group has lost acknowledged entries: opened again,
        its replica takes no part until it has rejoined."""
        assert self._journal is not None and group not in self.replicas
        state = self._journal.get(group) or GroupState(Epoch(0), NO_BROKER, base)
        self._journal.put(group, msgspec.structs.replace(state, lost_state=True), done)

    def begin_fresh(self, replica: Replica) -> None:
        """The group of a replica that asked the other voters is new: elect a leader at once."""
        self.liveness.moved_on(replica)
        if replica.epoch > 0:
            return
        replica.is_fresh = True
        replica.has_restarted = False
        self.liveness.add(replica)
        if replica.is_preferred:
            self.stand_first(replica)

    @staticmethod
    def stand_first(replica: Replica) -> None:
        """Stand for election without waiting if no other leader can exist: in a new group, or as
        the only voter that it ever had. Another leader may hold promises from before this broker's
        restart."""
        may_be_first = replica.is_fresh or replica.was_always_alone
        if may_be_first and not replica.is_leader and replica.failed is None:
            replica.on_election_timeout()

    def rebuild(self, replica: Replica) -> Raft:
        """A new core for a replica that could not perform its core's effects: as after a restart,
        except that the marks stay."""
        assert self._journal is not None
        state = self._journal.get(replica.group)
        if state is None:
            state = GroupState(Epoch(0), NO_BROKER, replica.base)
        if replica.raft.has_lost_state:
            state = msgspec.structs.replace(state, lost_state=True)
        last = replica.log.last_index
        commit, visible = replica.marks.commit, replica.marks.visible
        marks = Marks(Index(min(commit, last)), Index(min(visible, last)))
        return self.new_raft(
            replica.group,
            replica.log,
            state,
            replica.base,
            marks,
            may_rejoin=replica.rejoined > 0,
            is_old=replica.raft.joined == OUTDATED,
        )

    def new_raft(
        self,
        group: GroupId,
        log: Log,
        state: GroupState,
        base: Configuration,
        marks: Marks = NO_MARKS,
        *,
        may_rejoin: bool = False,
        is_old: bool = False,
    ) -> Raft:
        """A core for this log and this state. `may_rejoin`: that is noted already. `is_old`: the
        log is of an earlier data directory, and of no use."""
        shape = LogShape(
            first_index=log.start_index,
            last_index=log.last_index,
            flushed_index=log.flushed_index,
            previous_epoch=log.previous_epoch,
            start_offset=log.start_offset,
            epochs=list(log.epochs),
            configurations=[
                (index, self.decode_configuration(payload)) for index, payload in log.configurations
            ],
        )
        shape.compacted_index = log.compacted_index
        raft = Raft(
            group=group,
            self_id=self.self_id,
            log=shape,
            epoch=state.epoch,
            vote=state.vote,
            configuration=base,
            commit=marks.commit,
            visible=marks.visible,
            lost_state=state.lost_state,
            promised=state.promised,
            asks_to_rejoin=bool(self.on_rejoin_asked)
            and group != CONTROLLER_GROUP
            and not may_rejoin,
            joined=_joined(group, log, state, is_old=is_old),
        )
        if log.config.has_been_compacted:
            raft.step(CompactionEnabled())
        return raft

    def close_group(self, group: GroupId, *, remove: bool = False) -> None:
        """Stop a replica; with `remove`, of a deleted group, remove its log and state, too."""
        replica = self.replicas.pop(group, None)
        if replica is None:
            return
        replica.close()
        self.liveness.remove(replica)
        if remove:
            assert self._journal is not None
            try:
                self.disk.remove_tree(replica.log.directory)
            except OSError as error:  # The next start tries again.
                _log.error("%s cannot be removed: %s", replica.log.directory, error)
            self._journal.remove(group)
            self.leaders.forget(group)

    def is_peer_alive(self, peer: BrokerId) -> bool:
        """Whether a broker has sent anything lately; True for this one."""
        return peer == self.self_id or self.liveness.is_alive(peer)

    def has_hung_up(self, peer: BrokerId) -> bool:
        """Whether a broker has broken its connection and sent nothing since: it may be alive, but
        clients are not sent to it."""
        return self.liveness.has_hung_up(peer)

    def round_trip_ms(self, peer: BrokerId) -> int | None:
        """The smoothed round trip of heartbeats to a broker; None if it has answered none."""
        return self.liveness.measured_round_trip_ms(peer)

    @property
    def peers(self) -> list[BrokerId]:
        """All other known brokers."""
        return list(self._peers)

    # ---- what replicas ask -----------------------------------------------------------------------

    def send_soon(self, peer: BrokerId, group: GroupId, message: Message) -> None:
        """Send a control message at the end of this pass."""
        self._mail.send(peer, group, message)  # type: ignore[arg-type]

    def tell_soon(self, replica: Replica) -> None:
        """Send the marks to the followers after `TELL_DELAY_MS`, unless an append carries them
        before.

        Only clients that read from a follower wait for them. A message for each commit would cost
        more than all appends."""
        if not self._to_tell:
            self.clock.call_later(TELL_DELAY_MS, self._tell)
        self._to_tell[replica.group] = replica

    def persist(
        self,
        replica: Replica,
        effect: PersistState | ResetLog,
        done: Callable[[OSError | None], None],
    ) -> None:
        """Make a group's epoch and vote durable, or, for a log that is reset, the configuration in
        force: no entry would bring it again."""
        assert self._journal is not None
        if isinstance(effect, ResetLog):
            replica.base = effect.configuration
            self.persist_base(replica, done)
            return
        self.liveness.moved_on(replica)
        is_promise = effect.promised > effect.epoch
        self.candidacy_count += effect.vote == self.self_id and not is_promise
        state = _state_of(replica, effect.epoch, effect.vote, effect.promised)
        self._journal.put(replica.group, state, done)

    def persist_base(
        self, replica: Replica, done: Callable[[OSError | None], None] | None = None
    ) -> None:
        """Make the configuration at the log's start durable, after a change of `replica.base`."""
        assert self._journal is not None
        raft = replica.raft
        state = _state_of(replica, raft.epoch, raft.vote, raft.promised)
        self._journal.put(replica.group, state, done or replica.cleaning.on_base_persisted)

    def persist_new(self, replica: Replica, done: Callable[[OSError | None], None]) -> None:
        """Note durably that the replica has lost nothing, before it takes part."""
        assert self._journal is not None
        state = GroupState(replica.raft.epoch, replica.raft.vote, replica.base)
        self._journal.put(replica.group, state, done)

    def _remembered(self, group: GroupId) -> Epoch:
        """See `Liveness`."""
        state = None if self._journal is None else self._journal.get(group)
        return Epoch(0) if state is None else state.epoch

    def voters_of(self, spec: GroupSpec) -> tuple[BrokerId, ...]:
        """The voters of a closed group, as far as known here."""
        assert self._journal is not None
        state = self._journal.get(spec.group)
        base = None if state is None else state.configuration
        return (base or spec.configuration).all_voters

    def has_history(self, group: GroupId) -> bool:
        """Whether this broker knows an epoch of the group."""
        assert self._journal is not None
        state = self._journal.get(group)
        replica = self.replicas.get(group)
        known = 0 if state is None else state.epoch
        return max(known, 0 if replica is None else replica.raft.epoch) > 0

    def send_control(self, peer: BrokerId, kind: Kind, body: object) -> None:
        """Send a message at once; it may be lost."""
        self.network.send(peer, Lane.CONTROL, [encode_control(kind, body)])

    def announce(self, replica: Replica, epoch: Epoch) -> None:
        """Tell every broker that this one leads `replica`."""
        entry = LeaderEntry(replica.group, epoch, self.self_id)
        self.leaders.learn(entry)
        self._mail.announce(entry)

    def leads(self, group: GroupId, epoch: Epoch) -> bool:
        """Whether this broker leads the group in that epoch."""
        replica = self.replicas.get(group)
        return replica is not None and replica.is_leader and replica.epoch == epoch

    def _renounce(self, replica: Replica) -> None:
        """Announce that this broker no longer leads `replica`, if no other leader is known."""
        known = self.leaders.get(replica.group)
        if not replica.is_leader and known is not None and known.leader == self.self_id:
            self._mail.announce(self.leaders.end(known.group, known.epoch))

    def learn_leader(self, group: GroupId, epoch: Epoch, leader: BrokerId) -> None:
        """A replica here follows `leader`."""
        self.leaders.learn(LeaderEntry(group, epoch, leader))

    def on_serving(self, replica: Replica, is_serving: bool) -> None:
        """A replica here starts or stops answering for its partition."""
        _log.info("%s: %s epoch %d", replica.name, "leads" if is_serving else "led", replica.epoch)
        for callback in self.on_leadership:
            callback(replica, is_leading=is_serving)

    def on_full(self, replica: Replica, error: Exception) -> None:
        """A replica here found no space for a write, and will try again. One log line stands for
        all."""
        if replica.group == CONTROLLER_GROUP:
            self.reserve.lend(replica.name)
        now = self.clock.monotonic_ms()
        if now >= self._full_silence_until_ms:
            self._full_silence_until_ms = now + FULL_INTERVAL_MS
            _log.warning("%s: %s; what found no space is tried again", replica.name, error)

    def on_replica_failed(self, replica: Replica) -> None:
        """A replica takes no part until this broker restarts."""
        self.liveness.remove(replica)
        self._renounce(replica)
        for callback in self.on_failed:
            callback(replica)

    def decode_configuration(self, payload: bytes) -> Configuration:
        """The configuration that a marker carries."""
        return _configurations.decode(payload)

    # ---- sending ---------------------------------------------------------------------------------

    def _tell(self) -> None:
        to_tell, self._to_tell = self._to_tell, {}
        for replica in to_tell.values():
            if replica.leading is not None:
                replica.leading.pump_all()

    def _send_call(self, peer: BrokerId, message: bytes) -> bool:
        return self.network.send(peer, Lane.CONTROL, [bytes((Kind.CALL,)), message])

    def send_heartbeat(self, peer: BrokerId) -> None:
        """Send a heartbeat at once, besides the regular ones."""
        heartbeat = self.liveness.lead_session(peer).heartbeat(self.clock.monotonic_ms())
        self.network.send(peer, Lane.CONTROL, [encode_control(Kind.HEARTBEAT, heartbeat)])

    # ---- time ------------------------------------------------------------------------------------

    def _tick_later(self) -> None:
        delay = max(1, self.settings.heartbeat_interval_ms // 2)
        self._timer = self.clock.call_later(delay, self._tick)

    def _tick(self) -> None:
        now = self.clock.monotonic_ms()
        late = now - self._ticked_ms > LATE_TICK_FACTOR * self.settings.heartbeat_interval_ms
        self._ticked_ms = now
        if now >= self._heartbeat_due_ms:
            self._heartbeat_due_ms = now + self.settings.heartbeat_interval_ms
            for peer in self._peers:
                self.send_heartbeat(peer)
        if not late:
            self._judge()
        elif not self.liveness.forgive():
            # Ticks are always late: first read what has arrived, then act on silence.
            self.clock.call_later(1, self._judge)
        self.group_bootstrap.tick()
        self.led.ask_silent(now)
        self._tick_later()

    def _judge(self) -> None:
        """Act on peers that are silent."""
        if self._stopped:
            return
        for replica in self.liveness.without_quorum(self.led):
            _log.warning(
                "%s: no quorum that could commit answers; giving up leadership", replica.name
            )
            replica.on_quorum_lost()
            self._renounce(replica)
        for replica, leader, epoch in self.liveness.found_leaders():
            meet_leader(replica, leader, epoch)
        for replica in self.liveness.timed_out():
            replica.on_election_timeout()
            self._renounce(replica)

    def _on_leader_known(self, group: GroupId) -> None:
        for callback in self.on_leader_known:
            callback(group)


def _state_of(replica: Replica, epoch: Epoch, vote: BrokerId, promised: Epoch) -> GroupState:
    """The durable state of a replica."""
    joined = replica.raft.joined
    return GroupState(
        epoch,
        vote,
        replica.base,
        replica.raft.has_lost_state,
        promised,
        rejoined=replica.rejoined,
        joined=UNKNOWN if joined is None else joined,
    )


def _joined(group: GroupId, log: Log, state: GroupState, *, is_old: bool) -> Index | None:
    """See `raft.follower.stale_log_reset`. Every broker always follows the controller's group."""
    if group == CONTROLLER_GROUP:
        return None
    if is_old:
        return OUTDATED
    return log.last_index if state.joined == UNKNOWN else state.joined
