"""Who sends a follower in another region what it lacks: its leader, or a replica near it.

Why:    a region that was away lacks the same entries in each of its replicas. They should cross
        once, and not at all where one of its replicas has them.
How:    of the replicas in the follower's region those may lend that keep acknowledging what they
        are sent. The nearest that has flushed the entries, which are committed, is ordered to send
        them (`raft.peer_catchup`); the leader marks them as sent. Where nobody has them yet, but
        somebody who is ahead of the follower will, the follower waits for that. Who is ahead of
        whom is one order (what was sent, then whom the leader serves, then the number of the
        broker), so somebody is always ahead of all others, and that one the leader serves itself.
            A region returns one connection after the other. So who may borrow gets nothing with
        the question how far it is, where its region has others, heard or not; one that is served
        already and cannot be ordered yet is waited for, for a moment; and the first to be served is
        ahead also while it is asked once more.
            What comes by two ways may overtake: a follower is served by one at a time, and by
        another one only once it has acknowledged all that is under way. Who does not, for a while,
        is asked how far it is, and its leader serves it for some time; also where it refuses what
        was lent, for something before that has not come: the lender's log may begin later.
            Who is in step gets nothing by others: it would have everything later. Behind is who was
        reset or silent, or lacks what has left the leader's memory, until it has been sent all that
        was committed then. What was committed meanwhile its neighbour has by then, too, so it goes
        on in the same way; but only while it gains on its leader, so that this comes to an end.
            Compacted logs of two replicas may differ in what was let go. A mixture of both makes
        the same table as either, but for one thing: where one has let go a tombstone, and what it
        deletes came from the other, the key is back. A tombstone goes only once nobody has anything
        that it deletes (decision 0037); in logs that were compacted before that rule, once all
        members have it, so none of those that a member lacks is gone anywhere, but for what was
        there before it became one. Up to there, and after a lost disk until it takes part again,
        its leader serves it.
Owns:   who waits; one per leading replica.
Source: design section 5; decision 0022."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from strandline.base.network import Lane
from strandline.model.ids import NO_BROKER, BrokerId, Index
from strandline.replication.leader.sender import FollowerStream
from strandline.replication.wire import Ability

if TYPE_CHECKING:
    from strandline.base.clock import Timer
    from strandline.replication.replica.replica import Replica

LEADER = NO_BROKER
"""The leader sends by itself."""
BACK_OFF_MS = 10_000
"""For so long nothing is lent to a follower that what was lent has not reached."""
LANE_WAIT_EVERY_MS = 10_000
"""The lane of orders to a broker is waited for once in so long, however often its lanes break."""


class FetchSources:
    """See the module. `streams`: {follower: how it is served}; `pump`: goes on with a follower."""

    def __init__(
        self,
        replica: "Replica",
        streams: Mapping[BrokerId, FollowerStream],
        pump: Callable[[BrokerId], None],
    ) -> None:
        self._replica = replica
        self._streams = streams
        self._pump = pump
        self._waiting: dict[BrokerId, None] = {}
        # {to whom a lane of orders is waited for, or was lately: since when}
        self._lane_waits: dict[BrokerId, int] = {}
        self._timer: Timer | None = None

    def close(self) -> None:
        """Wake nobody any more."""
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def may_lend(self, stream: FollowerStream, first_index: Index, *, is_in_memory: bool) -> bool:
        """Whether to ask who sends the entries from `first_index` on: to who is behind, of what was
        committed when that turned out, and of what was since, while that is at most half as much
        each time. Who has been sent all of that is behind no more.

        `is_in_memory`: it could be sent from there, and is where that is under way already."""
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

    def are_there(self, peer: BrokerId) -> bool:
        """Whether `peer` may borrow, and has anybody in its region: a region returns one connection
        after the other, so who is not heard now may be in a moment."""
        return self._may_borrow(peer) and bool(self._neighbours(peer))

    def choose(self, peer: BrokerId, first_index: Index) -> BrokerId | None:
        """Who sends `peer` the entries from `first_index` on; None where it is to wait for somebody
        who is about to have them."""
        if not self._may_borrow(peer) or first_index > self._replica.raft.commit:
            return LEADER
        if self._replica.log.config.has_been_compacted and not self.may_mix(peer, first_index):
            return LEADER
        raft = self._replica.raft
        near = self._neighbours(peer)
        reliable = [one for one in near if self._is_reliable(one)]
        able = [one for one in reliable if raft.lendable_end(one) >= first_index]
        if able:
            present = self._streams[peer].fetch_source
            return present if present in able else self._nearest(peer, able)
        ahead = [one for one in near if one in self._streams and self._is_ahead(one, peer)]
        if any(one in reliable or self._is_awaited(one) for one in ahead):
            return None
        return LEADER

    def wait(self, peer: BrokerId) -> None:
        """Go on with `peer` when another follower has acknowledged something, or in a while."""
        self._waiting[peer] = None
        if self._timer is None:
            host = self._replica.host
            self._timer = host.clock.call_later(host.settings.resend_timeout_ms, self._look)

    def wake(self) -> None:
        """Something has changed for those who wait."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, {}
        for peer in waiting:
            self._pump(peer)

    def on_gone(self, fetch_source: BrokerId) -> list[BrokerId]:
        """Orders to `fetch_source` may be lost; to whom it was to send something."""
        return [
            peer
            for peer, stream in self._streams.items()
            if stream.fetch_source == fetch_source and stream.inflight
        ]

    def _look(self) -> None:
        self._timer = None
        self.wake()

    def _may_borrow(self, peer: BrokerId) -> bool:
        replica = self._replica
        host = replica.host
        stream = self._streams[peer]
        return (
            host.nearness.are_apart(replica.self_id, peer)
            and peer != replica.raft.transferring_to
            and host.clock.monotonic_ms() >= stream.backs_off_until_ms
            and host.liveness.can_do(peer, Ability.LENDING)
        )

    def may_mix(self, peer: BrokerId, first_index: Index) -> bool:
        """Whether, of a compacted log, no replica has let go a tombstone that `peer` lacks, from
        `first_index` on: all of that came when it was a member, and it has lost nothing since."""
        raft = self._replica.raft
        return not raft.progress[peer].is_recovering and first_index > raft.member_since(peer)

    def _neighbours(self, peer: BrokerId) -> list[BrokerId]:
        """The other members in the region of `peer`."""
        levels = self._replica.host.nearness.levels
        return [one for one in self._replica.raft.progress if one != peer and levels(one, peer)]

    def _needed(self) -> Ability:
        """What a lender of this log has to be able to."""
        if self._replica.log.config.has_been_compacted:
            return Ability.LENDING | Ability.LENDING_COMPACTED
        return Ability.LENDING

    def _is_well(self, fetch_source: BrokerId) -> bool:
        """Whether it is served, alive, and has not lost its log."""
        host = self._replica.host
        return (
            fetch_source in self._streams
            and not self._replica.raft.progress[fetch_source].is_recovering
            and host.is_peer_alive(fetch_source)
            and not host.has_hung_up(fetch_source)
        )

    def _is_reliable(self, fetch_source: BrokerId) -> bool:
        """Whether it can be ordered to lend, and acknowledges what it is sent."""
        host = self._replica.host
        if not self._is_well(fetch_source) or not host.liveness.can_do(
            fetch_source, self._needed()
        ):
            return False
        if not all(host.network.is_connected(fetch_source, lane) for lane in Lane):
            return False
        stream = self._streams[fetch_source]
        silent_ms = host.clock.monotonic_ms() - stream.progress_ms if stream.inflight else 0
        return silent_ms < host.settings.resend_timeout_ms

    def _is_awaited(self, fetch_source: BrokerId) -> bool:
        """Whether it is served again, and cannot be ordered anything yet: all lanes to a broker
        break together, and come up by turns. For the resend time-out, now and then."""
        host = self._replica.host
        if (
            not self._is_well(fetch_source)
            or host.liveness.cannot_do(fetch_source, self._needed())
            or not host.network.is_connected(fetch_source, Lane.BULK)
            or host.network.is_connected(fetch_source, Lane.CONTROL)
        ):
            return False
        now_ms = host.clock.monotonic_ms()
        since_ms = self._lane_waits.get(fetch_source)
        if since_ms is None or now_ms - since_ms >= LANE_WAIT_EVERY_MS:
            since_ms = self._lane_waits[fetch_source] = now_ms
        return now_ms - since_ms < host.settings.resend_timeout_ms

    def _nearest(self, peer: BrokerId, able: list[BrokerId]) -> BrokerId:
        levels = self._replica.host.nearness.levels
        end = self._replica.raft.lendable_end
        return max(able, key=lambda one: (levels(one, peer), end(one), -one))

    def _is_ahead(self, one: BrokerId, peer: BrokerId) -> bool:
        """Whether `one` will have what `peer` lacks before `peer` could."""
        replica = self._replica
        leading = replica.leading
        assert leading is not None
        # Who is served slower than the follower would be is not waited for.
        if leading.is_urgent(peer) and not leading.is_urgent(one):
            return False
        if leading.is_copied_to(one):
            is_halted = replica.host.throttle.is_halted(one)
            if is_halted or not leading.is_copied_to(peer):
                return False
        progress = replica.raft.progress
        theirs = progress[one]
        # A question may follow what was sent, as a second lane comes up; not so a second one.
        is_sent_more = 0 <= theirs.match_written < theirs.last_sent
        if theirs.is_probing and (not is_sent_more or self._streams[one].is_asked_again):
            return False
        return not leading.relays.is_stuck(one) and self._place(one) > self._place(peer)

    def _place(self, member: BrokerId) -> tuple[Index, bool, int]:
        """The higher, the further ahead."""
        next_index = self._replica.raft.progress[member].next_index
        return next_index, self._streams[member].fetch_source == LEADER, -member


def turn_to(stream: FollowerStream, fetch_source: BrokerId) -> bool:
    """Have a follower served by `fetch_source` from now on; False while something is on another
    way."""
    if stream.fetch_source != fetch_source:
        if stream.inflight:
            stream.is_blocked = True
            return False
        stream.fetch_source = fetch_source
    return True
