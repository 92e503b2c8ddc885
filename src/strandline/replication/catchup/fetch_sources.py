"""The leader chooses which replica sends a follower in another region the entries it lacks.

Why:    all replicas of a returning region lack the same entries. They should cross regions once, or
        not at all if a replica there has them.
How:    decision 0022 has each rule with its reason.
        - The nearest member there that has flushed the entries, all committed, sends them on the
          leader's order (`raft.follower.peer_catchup`).
        - If none has them yet, the follower waits for one that is ahead of it. "Ahead" is a total
          order, so the leader always serves one itself.
        - While a region's connections return one by one, probes carry no entries, and the leader
          waits briefly for a peer that it cannot order yet.
        - One sender at a time: two ways may overtake each other. If a peer's appends do not arrive,
          the leader serves the follower for `BACK_OFF_MS`.
        - Peers serve only followers that are behind; those in step get entries sooner from the
          leader.
        - The leader serves what may lack tombstones: a compacted log from before the follower was a
          member, and a follower that has lost its disk.
Owns:   the followers that wait; one per leading replica.
Source: design section 5; decisions 0022 and 0037."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from strandline.base.network import Lane
from strandline.model.ids import NO_BROKER, BrokerId, Index
from strandline.replication.leader.follower_stream import FollowerStream
from strandline.replication.leader.urgency import Urgency
from strandline.replication.relay.relays import Relays
from strandline.replication.replica.state import ReplicaState
from strandline.replication.shared import Shared
from strandline.replication.wire import Ability

if TYPE_CHECKING:
    from strandline.base.clock import Timer

LEADER = NO_BROKER
"""The fetch source of a follower that the leader itself serves."""
LANE_WAIT_EVERY_MS = 10_000
"""The leader waits for a peer's control lane at most once in this time."""


class FetchSources:
    """See the module. `streams`: {follower: its stream}; `pump`: sends a follower more."""

    def __init__(
        self,
        replica: ReplicaState,
        shared: Shared,
        streams: Mapping[BrokerId, FollowerStream],
        pump: Callable[[BrokerId], None],
        relays: Relays,
        urgency: Urgency,
    ) -> None:
        self._replica = replica
        self._clock = shared.clock
        self._settings = shared.settings
        self._network = shared.network
        self._nearness = shared.nearness
        self._contacts = shared.contacts
        self._throttle = shared.throttle
        self._streams = streams
        self._pump = pump
        self._relays = relays
        self._urgency = urgency
        self.waiting: dict[BrokerId, None] = {}
        # {peer whose control lane the leader waits for, or waited lately: since when}
        self._lane_waits: dict[BrokerId, int] = {}
        self._timer: Timer | None = None

    def close(self) -> None:
        """Drop all waiting followers."""
        self.waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def may_use_peers(
        self, stream: FollowerStream, first_index: Index, *, is_in_memory: bool
    ) -> bool:
        """Whether a peer may send the follower the entries from `first_index` on: while the
        follower is behind, and gains. It is behind up to what was committed when that was found;
        then up to what was committed since, if that is at most half as much each time.

        `is_in_memory`: the leader could send them from memory, and does so while such appends are
        in flight."""
        commit = self._replica.raft.commit
        if not is_in_memory:
            stream.is_behind = True
        if not stream.is_behind:
            return False
        lacked_count = commit - first_index + 1
        goes_on = not is_in_memory or 2 * lacked_count <= stream.missed_count
        if stream.missed_index < 0 or (first_index > stream.missed_index and goes_on):
            stream.missed_index, stream.missed_count = commit, lacked_count
        if is_in_memory and first_index > stream.missed_index:
            stream.is_behind = False
            stream.missed_index = Index(-1)
            return False
        return not (is_in_memory and stream.fetch_source == LEADER and stream.inflight)

    def has_neighbours(self, peer: BrokerId) -> bool:
        """Whether peers may serve `peer`, and its region has other members, connected or not."""
        return self._may_be_served(peer) and bool(self._neighbours(peer))

    def choose(self, peer: BrokerId, first_index: Index) -> BrokerId | None:
        """The broker that sends `peer` the entries from `first_index` on; None: `peer` waits for a
        member that is about to have them."""
        if not self._may_be_served(peer) or first_index > self._replica.raft.commit:
            return LEADER
        if self._replica.log.config.has_been_compacted and not self.may_mix(peer, first_index):
            return LEADER
        raft = self._replica.raft
        near = self._neighbours(peer)
        reliable = [one for one in near if self._is_reliable(one)]
        able = [one for one in reliable if raft.peer_fetch_end(one) >= first_index]
        if able:
            present = self._streams[peer].fetch_source
            return present if present in able else self._nearest(peer, able)
        ahead = [one for one in near if one in self._streams and self._is_ahead(one, peer)]
        if any(one in reliable or self._waits_for_lane(one) for one in ahead):
            return None
        return LEADER

    def wait(self, peer: BrokerId) -> None:
        """Pump `peer` again when another follower has acknowledged something, or after the resend
        time-out."""
        self.waiting[peer] = None
        if self._timer is None:
            self._timer = self._clock.call_later(self._settings.resend_timeout_ms, self._look)

    def wake(self) -> None:
        """Pump all followers that wait."""
        if not self.waiting:
            return
        waiting, self.waiting = self.waiting, {}
        for peer in waiting:
            self._pump(peer)

    def on_gone(self, fetch_source: BrokerId) -> list[BrokerId]:
        """Orders to `fetch_source` may be lost. Returns the followers that wait for entries from
        it."""
        return [
            peer
            for peer, stream in self._streams.items()
            if stream.fetch_source == fetch_source and stream.inflight
        ]

    def _look(self) -> None:
        self._timer = None
        self.wake()

    def _may_be_served(self, peer: BrokerId) -> bool:
        replica = self._replica
        stream = self._streams[peer]
        return (
            self._nearness.are_apart(replica.self_id, peer)
            and peer != replica.raft.transferring_to
            and self._clock.monotonic_ms() >= stream.backs_off_until_ms
            and self._contacts.can_do(peer, Ability.PEER_CATCHUP)
        )

    def may_mix(self, peer: BrokerId, first_index: Index) -> bool:
        """Whether several replicas may send `peer` entries of a compacted log: none has removed a
        tombstone that `peer` lacks from `first_index` on."""
        raft = self._replica.raft
        return not raft.progress[peer].is_recovering and first_index > raft.member_since(peer)

    def _neighbours(self, peer: BrokerId) -> list[BrokerId]:
        """The other members in the region of `peer`."""
        levels = self._nearness.levels
        return [one for one in self._replica.raft.progress if one != peer and levels(one, peer)]

    def _needed_abilities(self) -> Ability:
        """The abilities that a fetch source of this log needs."""
        if self._replica.log.config.has_been_compacted:
            return Ability.PEER_CATCHUP | Ability.PEER_CATCHUP_COMPACTED
        return Ability.PEER_CATCHUP

    def _is_usable(self, fetch_source: BrokerId) -> bool:
        """Whether the leader serves it, its broker is alive, and it has not lost its log."""
        return (
            fetch_source in self._streams
            and not self._replica.raft.progress[fetch_source].is_recovering
            and self._contacts.is_peer_alive(fetch_source)
            and not self._contacts.has_hung_up(fetch_source)
        )

    def _is_reliable(self, fetch_source: BrokerId) -> bool:
        """Whether the leader can order it to send entries, and it acknowledges what it is sent."""
        if not self._is_usable(fetch_source) or not self._contacts.can_do(
            fetch_source, self._needed_abilities()
        ):
            return False
        if not all(self._network.is_connected(fetch_source, lane) for lane in Lane):
            return False
        stream = self._streams[fetch_source]
        silent_ms = self._clock.monotonic_ms() - stream.progress_ms if stream.inflight else 0
        return silent_ms < self._settings.resend_timeout_ms

    def _waits_for_lane(self, fetch_source: BrokerId) -> bool:
        """Whether the leader serves it again and still waits for its control lane: lanes come up
        one by one. It waits for one resend time-out per `LANE_WAIT_EVERY_MS`."""
        if (
            not self._is_usable(fetch_source)
            or self._contacts.cannot_do(fetch_source, self._needed_abilities())
            or not self._network.is_connected(fetch_source, Lane.BULK)
            or self._network.is_connected(fetch_source, Lane.CONTROL)
        ):
            return False
        now_ms = self._clock.monotonic_ms()
        since_ms = self._lane_waits.get(fetch_source)
        if since_ms is None or now_ms - since_ms >= LANE_WAIT_EVERY_MS:
            since_ms = self._lane_waits[fetch_source] = now_ms
        return now_ms - since_ms < self._settings.resend_timeout_ms

    def _nearest(self, peer: BrokerId, able: list[BrokerId]) -> BrokerId:
        levels = self._nearness.levels
        end = self._replica.raft.peer_fetch_end
        return max(able, key=lambda one: (levels(one, peer), end(one), -one))

    def _is_ahead(self, one: BrokerId, peer: BrokerId) -> bool:
        """Whether `one` will have what `peer` lacks before the leader could send it to `peer`."""
        urgency = self._urgency
        # A follower does not wait for one that the leader serves more slowly than itself.
        if urgency.is_urgent(peer) and not urgency.is_urgent(one):
            return False
        if urgency.is_copied_to(one):
            is_halted = self._throttle.is_halted(one)
            if is_halted or not urgency.is_copied_to(peer):
                return False
        progress = self._replica.raft.progress
        theirs = progress[one]
        # One probe may follow what was sent, when a second lane comes up; a second probe has
        # another cause.
        is_sent_more = 0 <= theirs.match_written < theirs.last_sent
        if theirs.is_probing and (not is_sent_more or self._streams[one].is_asked_again):
            return False
        return not self._relays.is_stuck(one) and self._ahead_key(one) > self._ahead_key(peer)

    def _ahead_key(self, member: BrokerId) -> tuple[Index, bool, int]:
        """The sort key of "ahead": the higher, the further ahead."""
        next_index = self._replica.raft.progress[member].next_index
        return next_index, self._streams[member].fetch_source == LEADER, -member


def switch_source(stream: FollowerStream, fetch_source: BrokerId) -> bool:
    """Make `fetch_source` the sender of a follower's entries; False while entries are under way
    from another one."""
    if stream.fetch_source != fetch_source:
        if stream.inflight:
            stream.is_blocked = True
            return False
        stream.fetch_source = fetch_source
    return True
