"""The leader sends new entries to one replica of another region, which forwards them to the others.

Why:    each append should cross to a region once, however many replicas are there.
How:    a follower that is in step with another one of its region is served through it, its *relay*.
        The append to the relay names the others. The relay forwards the bytes before it writes
        them (`forwarding`). Each follower acknowledges to the leader, for itself. In the core, and
        in `last_sent`, the leader has sent to each of them. Probes, marks and missed entries go
        directly (`fetch_sources`).

        Order: voters relay before observers, so that no voter waits for an observer. In each of
        these two groups, replicas that are much further away come last. Otherwise the group's
        number decides.

        Detours: a follower that acknowledges nothing for two round trips, and a little more, is
        probed. The leader then sends it what it lacks directly, and for a while all else: 1 s
        first, and twice as long each time that it happens again soon. It does so at once if the
        relay reports that it could not forward, or if the relay's connection breaks. A relay with a
        full window makes the followers behind it wait; they are probed alike.

        Two ways may overtake each other. A follower that gets its first append through a relay
        keeps it for a moment, until the entries before it arrive (`forwarding`). A follower that
        leaves its relay is probed first.
Owns:   who may relay to whom, as long as members and labels stay; one per leader.
Source: design section 5 ("Relay"); decision 0034."""

import logging
from collections.abc import Callable, Collection, Mapping

from strandline.base.network import Lane
from strandline.model.ids import NO_BROKER, BrokerId, Index
from strandline.raft.group.configuration import Configuration
from strandline.replication.leader.follower_stream import BACK_OFF_MS, FollowerStream
from strandline.replication.replica.state import ReplicaState
from strandline.replication.shared import Shared
from strandline.replication.wire import Ability

ROUND_TRIPS = 2
SLACK_MS = 50
"""Flushes and passes of a loop vary by this much."""
TRANSFER_MS_MAX = 5_000
BYTES_PER_S_MIN = 2 * 1024 * 1024
"""The speed that a way is assumed to have before it is measured."""
ORDER_MS = 5_000
"""How long the order of a region's relays stays as it is."""
DISTANT_RATIO = 2
DISTANT_MS = 10
DETOUR_FIRST_MS, DETOUR_MAX_MS = 1_000, 64_000
CALM_MS = 30_000
"""A detour that ended so long ago does not make the next one longer."""

_NO_DETOUR = (-CALM_MS, 0)

_log = logging.getLogger("strandline.replication")


class Relays:
    """See the module. `streams`: {follower: its stream}; `pump` sends a follower more, `ask` probes
    it."""

    def __init__(
        self,
        replica: ReplicaState,
        shared: Shared,
        streams: Mapping[BrokerId, FollowerStream],
        pump: Callable[[BrokerId], None],
        ask: Callable[[BrokerId], None],
    ) -> None:
        self._replica = replica
        self._clock = shared.clock
        self._settings = shared.settings
        self._network = shared.network
        self._nearness = shared.nearness
        self._contacts = shared.contacts
        self._relay_watch = shared.relay_watch
        self._streams = streams
        self._pump = pump
        self._ask = ask
        # {follower: the followers in its region, itself included, in the order in which they may
        # relay}, by these members and labels, and by recent round trips.
        self.ways: dict[BrokerId, tuple[BrokerId, ...]] = {}
        self._members: Configuration | None = None
        self._labels_version = -1
        # {relay: when it was probed, refused an append, or was reset}
        self._upset_ms: dict[BrokerId, int] = {}
        # {follower: (until when it is served directly, for how long in all)}
        self._detours: dict[BrokerId, tuple[int, int]] = {}
        self._order_until_ms = 0

    # ---- choosing --------------------------------------------------------------------------------

    def are_needed(self) -> bool:
        """Whether any follower may get its entries through another one: brings `ways` up to
        date."""
        members, labels_version = self._replica.raft.state.configuration, self._nearness.version
        is_known = members is self._members and labels_version == self._labels_version
        if is_known and not self.ways:
            return False  # Round trips only change their order.
        now_ms = self._clock.monotonic_ms()
        if not is_known or now_ms >= self._order_until_ms:
            self._members, self._labels_version = members, labels_version
            self._order_until_ms = now_ms + ORDER_MS
            self.ways = self._find_ways()
        return bool(self.ways)

    def relay_of(self, peer: BrokerId) -> BrokerId:
        """The relay of what `peer` is sent next; NO_BROKER: the leader sends it directly."""
        way = self._way_to(peer)
        progress = self._replica.raft.progress.get(peer)
        if not way or progress is None or not self._may_be_behind(peer, progress.next_index):
            return NO_BROKER
        for one in way:
            if one == peer:
                return NO_BROKER
            if self._can_relay(one, progress.next_index):
                return one
        return NO_BROKER

    def carried_by(self, relay: BrokerId) -> list[BrokerId]:
        """The followers that get what `relay` is sent next through it: it is their `relay_of`."""
        way = self._way_to(relay)
        progress = self._replica.raft.progress.get(relay)
        if not way or progress is None:
            return []
        next_index = progress.next_index
        at = way.index(relay)
        behind = [one for one in way[at + 1 :] if self._may_be_behind(one, next_index)]
        if not behind or not self._can_relay(relay, next_index):
            return []
        return [] if any(self._can_relay(one, next_index) for one in way[:at]) else behind

    def serves(self, peer: BrokerId) -> bool:
        """Whether another follower relays the new entries to `peer`: now, or when it has room.
        False: the leader sends them directly."""
        relay = self.relay_of(peer)
        if relay == NO_BROKER:
            return False
        stream = self._streams[peer]
        stream.relay = relay
        stream.is_blocked = True
        self._relay_watch.add(self)
        self._pump(relay)
        return True

    def on_sent(self, peer: BrokerId, relay: BrokerId) -> None:
        """An append is in flight to `peer` through `relay`."""
        stream = self._streams[peer]
        stream.relay = relay
        stream.is_blocked = False
        stream.on_served_from_memory()
        self._relay_watch.add(self)

    def is_stuck(self, relay: BrokerId) -> bool:
        """Whether `relay` should have acknowledged the appends in flight a round trip ago."""
        stream = self._streams.get(relay)
        if stream is None or not stream.inflight:
            return False
        silent_ms = self._clock.monotonic_ms() - stream.progress_ms
        return silent_ms >= self._patience_ms(relay)

    # ---- leaving ---------------------------------------------------------------------------------

    def leave(self, peer: BrokerId) -> bool:
        """Whether the leader can serve `peer` directly at once; if not, it probes `peer` first."""
        stream = self._streams[peer]
        if stream.relay == NO_BROKER:
            return True
        if not stream.inflight:
            stream.relay = NO_BROKER
            return True
        self._clock.call_soon(lambda: self._part(peer))
        return False

    def _part(self, peer: BrokerId) -> None:
        """Probe `peer`; its relay is to blame only if that one is gone, or does not move."""
        self._ask_now(peer)
        stream = self._streams[peer]
        if stream.relay != NO_BROKER and self._is_there(stream.relay):
            stream.relay = NO_BROKER

    def on_missed(self, relay: BrokerId, peers: list[BrokerId]) -> None:
        """`relay` could not forward an append to these."""
        for peer in peers:
            stream = self._streams.get(peer)
            if stream is not None and stream.relay == relay:
                self._ask_now(peer)

    def on_upset(self, relay: BrokerId) -> None:
        """`relay` was probed itself, or refused an append: it may have received entries since that
        it did not forward."""
        self._upset_ms[relay] = self._clock.monotonic_ms()

    def on_gone(self, relay: BrokerId) -> None:
        """The connection to `relay` is new, or gone: what it was to forward may be lost."""
        self.on_upset(relay)
        for peer in [one for one, stream in self._streams.items() if stream.relay == relay]:
            self._ask_now(peer)

    def is_going_round(self, peer: BrokerId, now_ms: int) -> bool:
        """Whether `peer` is served directly for some time."""
        return now_ms < self._detours.get(peer, _NO_DETOUR)[0]

    def back_off(self, peer: BrokerId) -> None:
        """Serve `peer` directly for some time: an append through its relay has not arrived. Peers
        do not send it the missing entries either, if the relay has them (the link between the two
        is suspect) or is stuck (that would take longer)."""
        stream = self._streams[peer]
        if stream.relay != NO_BROKER:
            replica = self._replica
            now_ms = self._clock.monotonic_ms()
            until_ms, length_ms = self._detours.get(peer, _NO_DETOUR)
            is_calm = now_ms - until_ms >= CALM_MS
            length_ms = DETOUR_FIRST_MS if is_calm else min(2 * length_ms, DETOUR_MAX_MS)
            self._detours[peer] = now_ms + length_ms, length_ms
            relay = replica.raft.progress.get(stream.relay)
            is_upset = now_ms - self._upset_ms.get(stream.relay, -BACK_OFF_MS) < BACK_OFF_MS
            next_index = replica.raft.progress[peer].next_index
            if relay is not None and not is_upset and relay.match_written >= next_index:
                stream.backs_off_until_ms = now_ms + BACK_OFF_MS
            elif self.is_stuck(stream.relay):
                stream.backs_off_until_ms = now_ms + DETOUR_FIRST_MS
            text = "%s: broker %d does not get through broker %d what is new: directly for %d ms"
            _log.info(text, replica.name, peer, stream.relay, length_ms)

    def look(self, now_ms: int) -> bool:
        """Bypass relays that forward nothing; returns whether anything is in flight through one."""
        is_needed = False
        for peer in [one for one, stream in self._streams.items() if stream.relay != NO_BROKER]:
            stream = self._streams[peer]
            progress = self._replica.raft.progress.get(peer)
            if progress is None or progress.is_probing:
                continue
            if stream.inflight:
                is_needed = True
                if now_ms - stream.progress_ms >= self._patience_ms(peer):
                    self._ask_now(peer)
            elif stream.is_blocked:
                is_needed = True
                if self.is_stuck(stream.relay):
                    self.back_off(peer)
                self._pump(peer)
        return is_needed

    # ---- parts -----------------------------------------------------------------------------------

    def _ask_now(self, peer: BrokerId) -> None:
        stream = self._streams.get(peer)
        replica = self._replica
        progress = replica.raft.progress.get(peer)
        if stream is None or not replica.is_leader or progress is None:
            return
        if stream.inflight:
            # Once: the relay reports each append.
            if not progress.is_probing:
                self._ask(peer)
        else:
            stream.relay = NO_BROKER
            self._clock.call_soon(lambda: self._pump(peer))

    def _way_to(self, peer: BrokerId) -> tuple[BrokerId, ...]:
        return self.ways.get(peer, ()) if self.are_needed() else ()

    def _find_ways(self) -> dict[BrokerId, tuple[BrokerId, ...]]:
        replica = self._replica
        nearness = self._nearness
        voters = replica.configuration.all_voters
        far = sorted(
            one
            for one in replica.configuration.members
            if one != replica.self_id and nearness.are_apart(replica.self_id, one)
        )
        ways: dict[BrokerId, tuple[BrokerId, ...]] = {}
        for peer in far if self._settings.relays else ():
            region = [one for one in far if one == peer or nearness.levels(one, peer)]
            if peer not in ways and len(region) > 1:
                voting = [one for one in region if one in voters]
                turn = replica.group % len(voting) if voting else 0
                rest = [one for one in region if one not in voters]
                order = (*voting[turn:], *voting[:turn], *rest)
                ways |= dict.fromkeys(region, self._distant_last(order, voting))
        return ways

    def _distant_last(
        self, order: tuple[BrokerId, ...], voting: Collection[BrokerId]
    ) -> tuple[BrokerId, ...]:
        """The same order, with much more distant replicas last: among those that vote, and among
        those that do not."""
        rtt_ms = self._contacts.rtt_ms
        known = [rtt for one in order if (rtt := rtt_ms(one)) > 0]
        limit_ms = DISTANT_RATIO * min(known, default=0) + DISTANT_MS
        return tuple(sorted(order, key=lambda one: (one not in voting, rtt_ms(one) > limit_ms)))

    def _may_be_behind(self, peer: BrokerId, next_index: Index) -> bool:
        """Whether `peer` needs the same entries next, and may get them through another one."""
        progress = self._replica.raft.progress.get(peer)
        stream = self._streams.get(peer)
        return (
            progress is not None
            and stream is not None
            and progress.next_index == next_index
            and not progress.is_probing
            and not progress.is_recovering
            and not stream.is_behind
            and self._clock.monotonic_ms() >= self._detours.get(peer, _NO_DETOUR)[0]
            and self._contacts.can_do(peer, Ability.RELAYING)
        )

    def _can_relay(self, one: BrokerId, next_index: Index) -> bool:
        """Whether `one` needs the same entries next, and can be trusted to forward them."""
        replica = self._replica
        progress = replica.raft.progress.get(one)
        stream = self._streams.get(one)
        return (
            progress is not None
            and stream is not None
            and progress.next_index == next_index
            and not progress.is_probing
            and not progress.is_recovering
            and not stream.is_behind
            and self._contacts.can_do(one, Ability.RELAYING)
            and self._is_there(one)
        )

    def _is_there(self, relay: BrokerId) -> bool:
        """Whether `relay` is alive, connected, and acknowledges its appends."""
        return (
            self._contacts.is_peer_alive(relay)
            and not self._contacts.has_hung_up(relay)
            and self._network.is_connected(relay, Lane.BULK)
            and not self.is_stuck(relay)
        )

    def _patience_ms(self, peer: BrokerId) -> int:
        """How long the appends in flight may take, and a round trip more."""
        stream = self._streams[peer]
        window = stream.window
        rtt_ms = self._contacts.rtt_ms(peer)
        patience_ms = ROUND_TRIPS * int(max(rtt_ms, window.round_trip_ms)) + SLACK_MS
        transfer_ms = 0
        if window.bytes_per_s:
            transfer_ms = stream.inflight_bytes * 1000 // window.bytes_per_s
        if not (window.bytes_per_s and window.is_measured):
            # Allow for the first append, over both ways.
            first_bytes = stream.inflight[0][1].size_bytes if stream.inflight else 0
            transfer_ms = max(transfer_ms, 2 * first_bytes * 1000 // BYTES_PER_S_MIN)
        return patience_ms + min(transfer_ms, TRANSFER_MS_MAX)
