"""Hands on to other followers what leaders append, and takes what is handed on.

Why:    see `relays`; this is the other end of it.
How:    an append that names others is sent on as it is as soon as its checksums are looked at: to
        each of them that has room, before it is written here. Its leader is told of the others.
            The receiver takes it as its leader's own append by a longer way (see
        `raft.follower.peer_catchup`): only in the epoch in which it follows a leader, to which it
        acknowledges. If earlier entries are missing, they may be on another way: it keeps the
        append for `HOLD_MS`, so that nothing has to be sent again.
            Leaders whose appends are under way by relays are looked at again and again, sooner than
        others: to go round a relay should take no longer than a round trip.
Owns:   what is kept, and which leaders are looked at; one per broker.
Source: design section 5 ("Relay"); decision 0034."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from strandline.base.network import Lane
from strandline.model.ids import NO_BROKER, BrokerId, Epoch, GroupId
from strandline.raft.messages import AppendRequest, LentAppend
from strandline.replication.replica.entries import Entries
from strandline.replication.wire import (
    AppendHead,
    Kind,
    NotRelayed,
    encode_append_head,
)

if TYPE_CHECKING:
    from strandline.base.clock import Timer
    from strandline.replication.host.replication import Replication
    from strandline.replication.leader.relays import Relays
    from strandline.replication.replica.replica import Replica

HOLD_MS = 200
HELD_BYTES_MAX = 4 * 1024 * 1024
LOOK_MS = 25


@dataclass(frozen=True, slots=True)
class _Held:
    relay: BrokerId
    head: AppendHead
    entries: Entries
    size_bytes: int
    came_ms: int


class Relaying:
    """See the module."""

    def __init__(self, host: "Replication") -> None:
        self._host = host
        # {group: what came too early, by where it joins on}
        self._held: dict[GroupId, list[_Held]] = {}
        self._held_bytes = 0
        self._hold_timer: Timer | None = None
        # Insertion order is the order in which they are looked at.
        self._watched: dict[Relays, None] = {}
        self._watch_timer: Timer | None = None
        self.relayed_bytes = 0

    # ---- handing on ------------------------------------------------------------------------------

    def hand_on(self, leader: BrokerId, head: AppendHead, payload: memoryview) -> None:
        """Send a leader's append to those whom it names."""
        host = self._host
        own = AppendHead(head.group, head.request, head.may_wait, head.outlived)
        parts = (encode_append_head(own, Kind.RELAYED), bytes(payload))
        size = sum(map(len, parts))
        missed: list[BrokerId] = []
        for peer in head.to:
            on_handed = partial(host.queues.on_handed, peer, size)
            if host.queues.has_room(peer) and host.network.send(peer, Lane.BULK, parts, on_handed):
                host.queues.add(peer, size)
                self.relayed_bytes += size
            else:
                missed.append(peer)
        if missed:
            self.refuse(leader, head.group, head.request.epoch, missed)

    def refuse(self, leader: BrokerId, group: GroupId, epoch: Epoch, peers: list[BrokerId]) -> None:
        """Tell a leader that these did not get its append."""
        self._host.send_control(leader, Kind.NOT_RELAYED, NotRelayed(group, epoch, peers))

    def on_refused(self, relay: BrokerId, message: NotRelayed) -> None:
        """A relay says so."""
        replica = self._host.replicas.get(message.group)
        if replica is not None and replica.leading is not None and replica.epoch == message.epoch:
            replica.leading.relays.on_missed(relay, message.peers)

    # ---- taking ----------------------------------------------------------------------------------

    def on_relayed(self, relay: BrokerId, head: AppendHead, payload: memoryview) -> None:
        """An append of a leader, through another follower. Raises ProtocolError."""
        replica = self._host.replicas.get(head.group)
        if replica is None:
            return
        entries = Entries.checked(payload, head.request, may_wait=head.may_wait)
        if self._is_early(replica, head.request) and self._held_bytes < HELD_BYTES_MAX:
            self._hold(_Held(relay, head, entries.copied(), len(payload), self._now_ms()))
            return
        self._take(replica, relay, head, entries)
        self.release(replica)

    def release(self, replica: "Replica") -> None:
        """Take what was kept, where what comes before is there by now."""
        held = self._held.get(replica.group)
        while held:
            due = next((one for one in held if not self._is_early(replica, one.head.request)), None)
            if due is None:
                return
            held.remove(due)
            self._take_held(replica, due)
        self._held.pop(replica.group, None)

    def _now_ms(self) -> int:
        return self._host.clock.monotonic_ms()

    def _is_early(self, replica: "Replica", request: AppendRequest) -> bool:
        if replica.is_busy or request.epoch < replica.epoch:
            return False  # What waits for the journal is taken in turn.
        is_led = request.epoch == replica.epoch and replica.raft.leader != NO_BROKER
        return not is_led or request.prev_index > replica.raft.log.last_index

    def _take(
        self, replica: "Replica", relay: BrokerId, head: AppendHead, entries: Entries
    ) -> None:
        if head.request.epoch == replica.epoch:
            replica.hear_outlived(head.outlived)
        replica.on_message(relay, LentAppend(head.request), entries)

    def _take_held(self, replica: "Replica", held: _Held) -> None:
        self._held_bytes -= held.size_bytes
        self._take(replica, held.relay, held.head, held.entries)

    def _hold(self, held: _Held) -> None:
        group = self._held.setdefault(held.head.group, [])
        group.append(held)
        group.sort(key=lambda one: one.head.request.prev_index)
        self._held_bytes += held.size_bytes
        if self._hold_timer is None:
            self._hold_timer = self._host.clock.call_later(HOLD_MS, self._let_go)

    def _let_go(self) -> None:
        """What did not get its turn is refused, and its leader learns what is lacking."""
        self._hold_timer = None
        limit_ms = self._now_ms() - HOLD_MS
        for group in list(self._held):
            replica = self._host.replicas.get(group)
            late = [one for one in self._held[group] if one.came_ms <= limit_ms]
            rest = [one for one in self._held[group] if one.came_ms > limit_ms]
            if rest:
                self._held[group] = rest
            else:
                del self._held[group]
            for one in late:
                if replica is not None:
                    self._take_held(replica, one)
                else:
                    self._held_bytes -= one.size_bytes
            if replica is not None:
                self.release(replica)
        if self._held:
            self._hold_timer = self._host.clock.call_later(HOLD_MS, self._let_go)

    # ---- looking ---------------------------------------------------------------------------------

    def watch(self, relays: "Relays") -> None:
        """Look at a leader's relays until nothing is under way by them."""
        self._watched[relays] = None
        if self._watch_timer is None:
            self._watch_timer = self._host.clock.call_later(LOOK_MS, self._look)

    def forget(self, relays: "Relays") -> None:
        """It leads no more."""
        self._watched.pop(relays, None)

    def stop(self) -> None:
        """Hand on and look no more."""
        for timer in (self._hold_timer, self._watch_timer):
            if timer is not None:
                timer.cancel()
        self._held.clear()
        self._watched.clear()

    def _look(self) -> None:
        self._watch_timer = None
        now_ms = self._now_ms()
        for relays in list(self._watched):
            if relays in self._watched and not relays.look(now_ms):
                self._watched.pop(relays, None)
        if self._watched and self._watch_timer is None:
            self._watch_timer = self._host.clock.call_later(LOOK_MS, self._look)
