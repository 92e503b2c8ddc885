"""Through whom a leader sends what is new to the replicas of another region.

Why:    what is appended should cross to a region once, however many replicas are there.
How:    of the followers in one region those are served through one of them, their relay, that are
        in step with it: next they need what it is sent next, out of the leader's memory. The append
        to the relay names them; it hands the bytes on before it writes them (`relaying`), and each
        acknowledges to the leader, for itself alone. To the core, and to `last_sent`, the leader
        has sent to each. All else goes directly: probes, marks, what somebody missed
        (`fetch_sources`).
            Voters are relays before observers are, so that no voter waits for one; both after those
        of their kind to whom the way is much shorter; which of them, depends on the group. A relay
        whose window is full has those behind it wait, and so it may not last: who was to be sent
        something through it and acknowledges nothing for two round trips, and a little more, is
        asked how far it is; what it lacks then is sent directly, and for a while all else: for a
        second, as a packet may just have been lost, and for twice as long each time that it happens
        again soon. At once where the relay says that it could not hand something on, or its
        connection breaks.
            What goes by two ways may overtake. Who gets its first append through a relay keeps it
        for a moment, until what came before is there (`relaying`); who leaves one is asked first.
Owns:   who may relay to whom, as long as members and labels stay; one per leading replica.
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
"""Flushes and passes of a loop vary by so much."""
TRANSFER_MS_MAX = 5_000
BYTES_PER_S_MIN = 2 * 1024 * 1024
"""What a way is taken to carry while nothing was measured of it."""
ORDER_MS = 5_000
"""For so long who may relay stay in their order."""
DISTANT_RATIO = 2
DISTANT_MS = 10
DETOUR_FIRST_MS, DETOUR_MAX_MS = 1_000, 64_000
CALM_MS = 30_000
"""A detour that ended so long ago does not make the next one longer."""

_NO_DETOUR = (-CALM_MS, 0)

_log = logging.getLogger("strandline.replication")


class Relays:
    """See the module. `streams`: {follower: how it is served}; `pump` goes on with a follower,
    `ask` has it say how far it is."""

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
        # {follower: who is in its region, itself included, in the order in which they may relay},
        # of these members and labels, by round trips as they were lately.
        self._ways: dict[BrokerId, tuple[BrokerId, ...]] = {}
        self._members: Configuration | None = None
        self._labels_version = -1
        # {relay: when it was asked how far it is, or refused, or reset}
        self._upset_ms: dict[BrokerId, int] = {}
        # {follower: (until when it is served directly, for how long in all)}
        self._detours: dict[BrokerId, tuple[int, int]] = {}
        self._order_until_ms = 0

    # ---- choosing --------------------------------------------------------------------------------

    def relay_of(self, peer: BrokerId) -> BrokerId:
        """Through whom `peer` gets what is sent to it next; NO_BROKER: directly."""
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
        """Who is to get what `relay` is sent next through it: whose `relay_of` it is."""
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
        """Whether `peer` is sent what is new through another follower: now, or when that has room;
        False where it is to be sent directly."""
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
        """Something is under way to `peer` through `relay`."""
        stream = self._streams[peer]
        stream.relay = relay
        stream.is_blocked = False
        stream.on_served_from_memory()
        self._relay_watch.add(self)

    def is_stuck(self, relay: BrokerId) -> bool:
        """Whether what is under way to `relay` should have been acknowledged a round trip ago."""
        stream = self._streams.get(relay)
        if stream is None or not stream.inflight:
            return False
        silent_ms = self._clock.monotonic_ms() - stream.progress_ms
        return silent_ms >= self._patience_ms(relay)

    # ---- leaving ---------------------------------------------------------------------------------

    def leave(self, peer: BrokerId) -> bool:
        """Whether `peer` can be served directly at once; else it is asked how far it is, first."""
        stream = self._streams[peer]
        if stream.relay == NO_BROKER:
            return True
        if not stream.inflight:
            stream.relay = NO_BROKER
            return True
        self._clock.call_soon(lambda: self._part(peer))
        return False

    def _part(self, peer: BrokerId) -> None:
        """Ask `peer`; its relay is to blame only where that one is gone, or does not move."""
        self._ask_now(peer)
        stream = self._streams[peer]
        if stream.relay != NO_BROKER and self._is_there(stream.relay):
            stream.relay = NO_BROKER

    def on_missed(self, relay: BrokerId, peers: list[BrokerId]) -> None:
        """`relay` could not hand something on to these."""
        for peer in peers:
            stream = self._streams.get(peer)
            if stream is not None and stream.relay == relay:
                self._ask_now(peer)

    def on_upset(self, relay: BrokerId) -> None:
        """`relay` itself is asked how far it is, or refused: what it has now it may have been sent
        since, and not have handed on."""
        self._upset_ms[relay] = self._clock.monotonic_ms()

    def on_gone(self, relay: BrokerId) -> None:
        """The connection to `relay` is another one, or none: what it was to hand on may be lost."""
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
        """Go round relays through which nothing comes; whether anything is under way by one."""
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
            # Once: a relay says so of each append.
            if not progress.is_probing:
                self._ask(peer)
        else:
            stream.relay = NO_BROKER
            self._clock.call_soon(lambda: self._pump(peer))

    def _way_to(self, peer: BrokerId) -> tuple[BrokerId, ...]:
        replica = self._replica
        nearness = self._nearness
        members = replica.configuration
        now_ms = self._clock.monotonic_ms()
        if (
            members is not self._members
            or nearness.version != self._labels_version
            or now_ms >= self._order_until_ms
        ):
            self._members, self._labels_version = members, nearness.version
            self._order_until_ms = now_ms + ORDER_MS
            self._ways = self._find_ways()
        return self._ways.get(peer, ())

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
        """The same, but for those to whom the way is much longer than to others in the region: they
        come last, of those that vote and of those that do not."""
        rtt_ms = self._contacts.rtt_ms
        known = [rtt for one in order if (rtt := rtt_ms(one)) > 0]
        limit_ms = DISTANT_RATIO * min(known, default=0) + DISTANT_MS
        return tuple(sorted(order, key=lambda one: (one not in voting, rtt_ms(one) > limit_ms)))

    def _may_be_behind(self, peer: BrokerId, next_index: Index) -> bool:
        """Whether `peer` is sent the same next, and may get it through another one."""
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
        """Whether `one` is sent the same next, and can be trusted to hand it on."""
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
        """Whether `relay` is alive, connected, and acknowledges what it is sent."""
        return (
            self._contacts.is_peer_alive(relay)
            and not self._contacts.has_hung_up(relay)
            and self._network.is_connected(relay, Lane.BULK)
            and not self.is_stuck(relay)
        )

    def _patience_ms(self, peer: BrokerId) -> int:
        """How long what is under way may take, and a round trip more."""
        stream = self._streams[peer]
        window = stream.window
        rtt_ms = self._contacts.rtt_ms(peer)
        patience_ms = ROUND_TRIPS * int(max(rtt_ms, window.round_trip_ms)) + SLACK_MS
        transfer_ms = 0
        if window.bytes_per_s:
            transfer_ms = stream.inflight_bytes * 1000 // window.bytes_per_s
        if not (window.bytes_per_s and window.is_measured):
            # What comes first is waited for, over both ways.
            first_bytes = stream.inflight[0][1].size_bytes if stream.inflight else 0
            transfer_ms = max(transfer_ms, 2 * first_bytes * 1000 // BYTES_PER_S_MIN)
        return patience_ms + min(transfer_ms, TRANSFER_MS_MAX)
