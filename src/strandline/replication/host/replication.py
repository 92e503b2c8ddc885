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
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Protocol

from strandline.base.clock import Clock, Timer
from strandline.base.disk import Disk
from strandline.base.errors import StorageError
from strandline.base.network import Lane, Network
from strandline.model.ids import CONTROLLER_GROUP, BrokerId, Epoch, GroupId, Index
from strandline.network.calls import Calls
from strandline.raft.group.configuration import Configuration
from strandline.replication.catchup.peer_sender import PeerSender
from strandline.replication.host.bootstrap import GroupBootstrap
from strandline.replication.host.early_appends import EarlyAppends
from strandline.replication.host.group_spec import GroupSpec
from strandline.replication.host.inbound import Inbound
from strandline.replication.host.leaders import Leaders
from strandline.replication.host.led_groups import LedGroups
from strandline.replication.host.opening import Opening
from strandline.replication.host.removal import ReplicaRemoval
from strandline.replication.liveness.fencing import Fencing
from strandline.replication.liveness.heartbeat_exchanges import HeartbeatExchanges
from strandline.replication.relay.forwarding import Relaying
from strandline.replication.repair.log_repair import LogRepair
from strandline.replication.replica.compactor import Compactor
from strandline.replication.replica.log_start_offsets import LogStartOffsets
from strandline.replication.replica.replica import Replica
from strandline.replication.replica.state import ReplicaState
from strandline.replication.settings import ReplicationSettings
from strandline.replication.shared import make_shared
from strandline.replication.wire import Kind, LeaderEntry

JOURNAL = "state.journal"
LATE_TICK_FACTOR = 3
FULL_INTERVAL_MS = 10_000
"""The shortest time between two log lines about a full disk."""

_log = logging.getLogger("strandline.replication")


class OnLeadership(Protocol):
    """Called when a replica here starts or stops answering for its partition."""

    def __call__(self, replica: Replica, /, *, is_leading: bool) -> None: ...


class Replication:
    """See the module. Callbacks: `on_removal` before a replica is removed, `on_stale_log` when a
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
        self.data_directory = data_directory
        self.replicas: dict[GroupId, Replica] = {}
        self._peers: dict[BrokerId, None] = {}
        self.on_elected: list[Callable[[Replica], None]] = []
        self.on_leadership: list[OnLeadership] = []
        self.on_leader_known: list[Callable[[GroupId], None]] = []
        self.on_failed: list[Callable[[Replica], None]] = []
        self.on_configuration: list[Callable[[Replica, Index, Configuration], None]] = []
        """Called when a configuration is committed, with its index."""
        self.on_rejoin_asked: list[Callable[[Replica], None]] = []
        """Where it is empty, replicas that lost their disk do not ask to rejoin."""
        self.on_removal: list[Callable[[GroupId], None]] = []
        self.on_stale_log: list[Callable[[Replica], None]] = []
        session = rng.getrandbits(62) + 1
        shared = self.shared = make_shared(
            self_id=self_id,
            clock=clock,
            rng=rng,
            disk=disk,
            network=network,
            settings=settings,
            data_directory=data_directory,
            session=session,
            replicas=self.replicas,
            peers=self._peers,
            on_rejoin_asked=self.on_rejoin_asked,
        )
        # The names under which the rest of the broker knows what is shared.
        self.memory, self.queues, self.throttle = shared.memory, shared.queues, shared.throttle
        self.nearness, self.liveness = shared.nearness, shared.liveness
        self.contacts, self.bound_votes = shared.contacts, shared.bound_votes
        self.wrong_buckets = shared.wrong_buckets
        self.reserve, self.durable = shared.reserve, shared.durable
        self.led = LedGroups()
        self.leaders = Leaders(self._on_leader_known)
        self.calls = Calls(self._send_call, first_number=session)
        self.compactor = Compactor(clock, slice_bytes=settings.compaction_slice_bytes)
        self.peer_sender = PeerSender(self.replicas, shared)
        self.relaying = Relaying(self.replicas, shared)
        self.repairs = LogRepair(self.replicas, self.calls, clock)
        self.log_start_offsets = LogStartOffsets(self.replicas, self.calls, shared)
        self.fencing = Fencing(self.replicas, self.led, self._peers, self.calls, shared)
        self.group_bootstrap = GroupBootstrap(self.replicas, shared, session)
        self.early_appends = EarlyAppends(self.replicas, clock, shared.outbox)
        self.exchanges = self._make_exchanges()
        self._opening: Opening | None = None
        self._removal: ReplicaRemoval | None = None
        self._timer: Timer | None = None
        self._ticked_ms = self._full_silence_until_ms = 0
        self._stopped = False
        self.inbound = self._make_inbound()
        network.bind(self.inbound)

    def _make_exchanges(self) -> HeartbeatExchanges:
        return HeartbeatExchanges(
            self._peers,
            self_id=self.self_id,
            contacts=self.contacts,
            network=self.network,
            clock=self.clock,
            settings=self.settings,
        )

    def _make_inbound(self) -> Inbound:
        return Inbound(
            self.replicas,
            self.shared,
            led=self.led,
            leaders=self.leaders,
            calls=self.calls,
            peer_sender=self.peer_sender,
            relaying=self.relaying,
            early_appends=self.early_appends,
            group_bootstrap=self.group_bootstrap,
            exchanges=self.exchanges,
        )

    # ---- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Open the journal and start to tick; groups are opened one by one."""
        self.disk.make_directories(f"{self.data_directory}/logs")
        self.reserve.start()
        self.durable.open(
            self.disk,
            f"{self.data_directory}/{JOURNAL}",
            clock=self.clock,
            use_reserve=partial(self.reserve.release, "the journal of votes"),
        )
        self._opening = Opening(
            self.replicas,
            self.shared,
            self,
            disk=self.disk,
            journal=self.durable.journal,
            directory=f"{self.data_directory}/logs",
            group_bootstrap=self.group_bootstrap,
            early_appends=self.early_appends,
        )
        self._removal = ReplicaRemoval(
            self.durable.journal,
            clock=self.clock,
            disk=self.disk,
            on_removal=self.on_removal,
            close_group=self.close_group,
        )
        self._ticked_ms = self.clock.monotonic_ms()
        self._tick_later(self.exchanges.tick_ms)

    def stop(self) -> None:
        """Close the groups; nothing is sent from now on."""
        self._stopped = True
        self.inbound.stop()
        self.shared.outbox.stop()
        self.exchanges.stop()
        if self._timer is not None:
            self._timer.cancel()
        self.calls.stop()
        self.compactor.stop()
        self.repairs.stop()
        self.log_start_offsets.stop()
        self.throttle.stop()
        self.reserve.stop()
        self.peer_sender.stop()
        self.relaying.stop()
        self.shared.relay_watch.stop()
        if self._opening is not None:
            self._opening.abandon()
        for group in list(self.replicas):
            self.close_group(group)
        self.durable.close()

    def set_peer(self, peer: BrokerId, host: str, port: int) -> None:
        """Set a broker's address."""
        if peer != self.self_id:
            self._peers[peer] = None
            self.network.set_peer(peer, host, port)

    def remove_peer(self, peer: BrokerId) -> None:
        """Drop all connections and state of a broker that has left."""
        self._peers.pop(peer, None)
        self.network.remove_peer(peer)
        self.liveness.remove_peer(peer)
        self.exchanges.remove(peer)

    def open_group(self, spec: GroupSpec) -> Replica:
        """Open or create the replica of a group here. Raises OSError, StorageError."""
        return self.opening.open_one(spec)

    def space(self) -> tuple[int, int]:
        """(bytes used, bytes left) of the disk with the data directory. Raises OSError."""
        where = self.data_directory
        return self.disk.used_bytes(where), self.disk.free_bytes(where)

    @property
    def opening(self) -> Opening:
        """Opens several groups together."""
        assert self._opening is not None
        return self._opening

    @property
    def removal(self) -> ReplicaRemoval:
        """Removes groups that this broker no longer holds."""
        assert self._removal is not None
        return self._removal

    def close_group(self, group: GroupId, *, remove: bool = False) -> None:
        """Stop a replica; with `remove`, of a deleted group, remove its log and state, too."""
        replica = self.replicas.pop(group, None)
        if replica is None:
            return
        replica.close()
        self.liveness.remove(replica)
        if remove:
            try:
                self.disk.remove_tree(replica.log.directory)
            except OSError as error:  # The next start tries again.
                _log.error("cannot remove %s: %s", replica.log.directory, error)
            self.durable.journal.remove(group)
            self.leaders.remove(group)

    def is_peer_alive(self, peer: BrokerId) -> bool:
        """Whether a broker has sent anything lately; True for this one."""
        return self.contacts.is_peer_alive(peer)

    def silence_ms(self, peer: BrokerId) -> int | None:
        """How long ago a broker last sent anything; None: never."""
        return self.contacts.silence_ms(peer)

    def has_hung_up(self, peer: BrokerId) -> bool:
        """Whether a broker has broken its connection and sent nothing since: it may be alive, but
        clients are not sent to it."""
        return self.contacts.has_hung_up(peer)

    def round_trip_ms(self, peer: BrokerId) -> int | None:
        """The smoothed round trip of heartbeats to a broker; None if it has answered none."""
        return self.contacts.measured_round_trip_ms(peer)

    @property
    def peers(self) -> list[BrokerId]:
        """All other known brokers."""
        return list(self._peers)

    # ---- what replicas ask -----------------------------------------------------------------------

    def announce(self, replica: Replica, epoch: Epoch) -> None:
        """Tell every broker that this one leads `replica`."""
        entry = LeaderEntry(replica.group, epoch, self.self_id)
        self.leaders.learn(entry)
        self.shared.outbox.announce(entry)

    def _announce_end(self, replica: Replica) -> None:
        """Announce that this broker no longer leads `replica`, if no other leader is known."""
        known = self.leaders.get(replica.group)
        if not replica.is_leader and known is not None and known.leader == self.self_id:
            self.shared.outbox.announce(self.leaders.end(known.group, known.epoch))

    def learn_leader(self, group: GroupId, epoch: Epoch, leader: BrokerId) -> None:
        """A replica here follows `leader`."""
        self.leaders.learn(LeaderEntry(group, epoch, leader))

    def on_serving(self, replica: Replica, *, is_serving: bool) -> None:
        """A replica here starts or stops answering for its partition."""
        _log.info("%s: %s epoch %d", replica.name, "leads" if is_serving else "led", replica.epoch)
        for callback in self.on_leadership:
            callback(replica, is_leading=is_serving)

    def on_full(self, replica: Replica, error: OSError | StorageError) -> None:
        """A replica here found no space for a write, and will try again. One log line stands for
        all."""
        if replica.group == CONTROLLER_GROUP:
            self.reserve.release(replica.name)
        now = self.clock.monotonic_ms()
        if now >= self._full_silence_until_ms:
            self._full_silence_until_ms = now + FULL_INTERVAL_MS
            _log.warning("%s: %s; the write is tried again", replica.name, error)

    def on_replica_failed(self, replica: Replica) -> None:
        """A replica takes no part until this broker restarts."""
        self.liveness.remove(replica)
        self._announce_end(replica)
        for callback in self.on_failed:
            callback(replica)

    # ---- sending ---------------------------------------------------------------------------------

    def _send_call(self, peer: BrokerId, message: bytes) -> bool:
        return self.network.send(peer, Lane.CONTROL, [bytes((Kind.CALL,)), message])

    # ---- time ------------------------------------------------------------------------------------

    def _tick_later(self, delay_ms: int) -> None:
        self._timer = self.clock.call_later(max(1, delay_ms), self._tick)

    def _tick(self) -> None:
        now = self.clock.monotonic_ms()
        late = now - self._ticked_ms > LATE_TICK_FACTOR * self.settings.heartbeat_interval_ms
        self._ticked_ms = now
        next_ms = self.exchanges.tick()
        if not late:
            self._judge()
        elif not self.liveness.forgive():
            # Ticks are always late: first read what has arrived, then act on silence.
            self.clock.call_later(1, self._judge)
        self.group_bootstrap.tick()
        self.led.probe_stalled(now)
        self._tick_later(next_ms)

    def _judge(self) -> None:
        """Act on peers that are silent."""
        if self._stopped:
            return
        for replica in self._those(self.liveness.without_quorum(self.led)):
            _log.warning("%s: no quorum that could commit answers; stepping down", replica.name)
            replica.on_quorum_lost()
            self._announce_end(replica)
        for state, leader, epoch in self.liveness.found_leaders():
            for replica in self._those([state]):
                replica.on_leader_found(leader, epoch)
        for replica in self._those(self.liveness.timed_out()):
            replica.on_election_timeout()
            self._announce_end(replica)

    def _those(self, states: Iterable[ReplicaState]) -> Iterator[Replica]:
        """The replicas with these states, but for those that are closed meanwhile."""
        for state in states:
            replica = self.replicas.get(state.group)
            if replica is not None:
                yield replica

    def _on_leader_known(self, group: GroupId) -> None:
        for callback in self.on_leader_known:
            callback(group)
