"""A relay forwards its leader's appends to other followers; those take what a relay forwards.

Why:    see `relays`; this is the other end of it.
How:    once the checksums of an append that names other followers are verified, the relay forwards
        it unchanged to each that has room, and then writes it itself. It reports the others to its
        leader.
            The receiver treats it as its leader's own append that took a longer way (see
        `raft.follower.peer_catchup`). It takes it only in the epoch in which it follows a leader,
        and acknowledges to that leader. If earlier entries are missing, they may be on another way:
        the receiver keeps the append for `HOLD_MS`, so that the leader sends nothing again.
Owns:   the appends that are kept; one per broker.
Source: design section 5 ("Relay"); decision 0034."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from strandline.base.clock import Timer
from strandline.base.network import Lane
from strandline.model.ids import NO_BROKER, BrokerId, Epoch, GroupId
from strandline.raft.messages import AppendRequest, PeerAppend
from strandline.replication.replica.entries import Entries
from strandline.replication.replica.replica import Replica
from strandline.replication.shared import Shared
from strandline.replication.wire import (
    AppendHead,
    Kind,
    NotRelayed,
    encode_append_head,
)

HOLD_MS = 200
HELD_BYTES_MAX = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Held:
    relay: BrokerId
    head: AppendHead
    entries: Entries
    size_bytes: int
    came_ms: int


class Relaying:
    """See the module."""

    def __init__(self, replicas: Mapping[GroupId, Replica], shared: Shared) -> None:
        self._replicas = replicas
        self._clock = shared.clock
        self._network = shared.network
        self._queues = shared.queues
        self._outbox = shared.outbox
        # {group: the appends that came too early, by the entry before them}
        self.held: dict[GroupId, list[_Held]] = {}
        self._held_bytes = 0
        self._hold_timer: Timer | None = None
        self.relayed_bytes = 0

    # ---- handing on ------------------------------------------------------------------------------

    def hand_on(self, leader: BrokerId, head: AppendHead, payload: memoryview) -> None:
        """Forward a leader's append to the followers that it names."""
        own = AppendHead(head.group, head.request, head.may_wait, head.outlived)
        parts = (encode_append_head(own, Kind.RELAYED), bytes(payload))
        size = sum(map(len, parts))
        missed: list[BrokerId] = []
        for peer in head.to:
            on_handed = partial(self._queues.on_handed, peer, size)
            if self._queues.has_room(peer) and self._network.send(
                peer, Lane.BULK, parts, on_handed
            ):
                self._queues.add(peer, size)
                self.relayed_bytes += size
            else:
                missed.append(peer)
        if missed:
            self.refuse(leader, head.group, head.request.epoch, missed)

    def refuse(self, leader: BrokerId, group: GroupId, epoch: Epoch, peers: list[BrokerId]) -> None:
        """Tell a leader that its append was not forwarded to these."""
        self._outbox.send_now(leader, Kind.NOT_RELAYED, NotRelayed(group, epoch, peers))

    def on_refused(self, relay: BrokerId, message: NotRelayed) -> None:
        """A relay could not forward an append to some followers."""
        replica = self._replicas.get(message.group)
        if (
            replica is not None
            and replica.leadership is not None
            and replica.epoch == message.epoch
        ):
            replica.leadership.sender.relays.on_missed(relay, message.peers)

    # ---- taking ----------------------------------------------------------------------------------

    def on_relayed(self, relay: BrokerId, head: AppendHead, payload: memoryview) -> None:
        """An append of a leader, through another follower. Raises ProtocolError."""
        replica = self._replicas.get(head.group)
        if replica is None:
            return
        entries = Entries.checked(payload, head.request, may_wait=head.may_wait)
        if self._is_early(replica, head.request) and self._held_bytes < HELD_BYTES_MAX:
            self._hold(_Held(relay, head, entries.copied(), len(payload), self._now_ms()))
            return
        self._take(replica, relay, head, entries)
        self.release(replica)

    def release(self, replica: Replica) -> None:
        """Take the appends that were kept, if the entries before them are there by now."""
        held = self.held.get(replica.group)
        while held:
            due = next((one for one in held if not self._is_early(replica, one.head.request)), None)
            if due is None:
                return
            held.remove(due)
            self._take_held(replica, due)
        self.held.pop(replica.group, None)

    def _now_ms(self) -> int:
        return self._clock.monotonic_ms()

    def _is_early(self, replica: Replica, request: AppendRequest) -> bool:
        if replica.is_busy or request.epoch < replica.epoch:
            return False  # What waits for the journal is taken in turn.
        is_led = request.epoch == replica.epoch and replica.raft.leader != NO_BROKER
        return not is_led or request.prev_index > replica.raft.log.last_index

    def _take(self, replica: Replica, relay: BrokerId, head: AppendHead, entries: Entries) -> None:
        if head.request.epoch == replica.epoch:
            replica.on_outlived(head.outlived)
        replica.on_append(relay, PeerAppend(head.request), entries)

    def _take_held(self, replica: Replica, held: _Held) -> None:
        self._held_bytes -= held.size_bytes
        assert self._held_bytes >= 0
        self._take(replica, held.relay, held.head, held.entries)

    def _hold(self, held: _Held) -> None:
        group = self.held.setdefault(held.head.group, [])
        group.append(held)
        group.sort(key=lambda one: one.head.request.prev_index)
        self._held_bytes += held.size_bytes
        if self._hold_timer is None:
            self._hold_timer = self._clock.call_later(HOLD_MS, self._end_hold)

    def _end_hold(self) -> None:
        """Take appends that were kept too long: the core refuses them, and so tells the leader."""
        self._hold_timer = None
        limit_ms = self._now_ms() - HOLD_MS
        for group in list(self.held):
            replica = self._replicas.get(group)
            late = [one for one in self.held[group] if one.came_ms <= limit_ms]
            rest = [one for one in self.held[group] if one.came_ms > limit_ms]
            if rest:
                self.held[group] = rest
            else:
                del self.held[group]
            for one in late:
                if replica is not None:
                    self._take_held(replica, one)
                else:
                    self._held_bytes -= one.size_bytes
                    assert self._held_bytes >= 0
            if replica is not None:
                self.release(replica)
        if self.held:
            self._hold_timer = self._clock.call_later(HOLD_MS, self._end_hold)

    def stop(self) -> None:
        """Forward nothing from now on."""
        if self._hold_timer is not None:
            self._hold_timer.cancel()
        self.held.clear()
