"""What this broker hears of its peers: heartbeat sessions, round trips, silences.

Why:    one heartbeat for each pair of brokers stands for all their groups, so what a broker knows
        of a peer belongs to no group.
How:    each message shows that its sender is alive; for two election time-outs, it then counts as
        alive. A session for each direction says what the leading side leads, and how long its
        heartbeats take. A peer that breaks its connection has hung up until it sends again.
Owns:   the sessions and the times of contact; one per broker.
Source: Raft thesis 3.4; design sections 5 and 8."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import count

from strandline.base.clock import Clock
from strandline.model.ids import BrokerId, Epoch, GroupId
from strandline.replication.liveness.sessions import NEVER_MS, FollowSession, LeadSession
from strandline.replication.settings import ReplicationSettings
from strandline.replication.wire import Ability, HeartbeatAnswer

FORGIVE_FACTOR = 4
"""Late ticks are forgiven at most once in this many election time-outs."""
MEANINGFUL_LOSSES_MAX = 2
"""The loss of a connection and of the first attempt to restore it say something about the peer;
later failures repeat it."""


class PeerContacts:
    """See the module. Others read `leads`, `follows`, `slowest_rtt_ms` and `started_ms`."""

    def __init__(
        self, *, self_id: BrokerId, clock: Clock, settings: ReplicationSettings, session: int
    ) -> None:
        """`session`: the first number of this process's heartbeat sessions."""
        self._self_id = self_id
        self._clock = clock
        self._settings = settings
        # Unique numbers of sessions and nonces. A peer that was removed and added again gets a new
        # session, because its heartbeat numbers start again.
        self._unused = count(session)
        self.on_change: Callable[[BrokerId], None] = _ignore
        """Called with a peer when what this broker leads towards it changes."""
        # {peer: the session in which this broker leads towards it}
        self.leads: dict[BrokerId, LeadSession] = {}
        # {peer: the session in which it leads towards this broker}
        self.follows: dict[BrokerId, FollowSession] = {}
        # The longest smoothed round trip to a peer.
        self.slowest_rtt_ms = 0
        self._last_contact_ms: dict[BrokerId, int] = {}
        # Peers that broke the connection and have sent nothing since.
        self._hung_up: set[BrokerId] = set()
        # {peer: connections and attempts lost since it was connected}
        self._losses: dict[BrokerId, int] = {}
        self.started_ms = clock.monotonic_ms()
        self._forgiven_ms = NEVER_MS

    # ---- sessions --------------------------------------------------------------------------------

    def lead_session(self, peer: BrokerId) -> LeadSession:
        """The session in which this broker leads towards `peer`."""
        session = self.leads.get(peer)
        if session is None:
            session = LeadSession(next(self._unused), partial(self._on_change, peer))
            self.leads[peer] = session
        return session

    def follow_session(self, peer: BrokerId) -> FollowSession:
        """The session in which `peer` leads towards this broker."""
        session = self.follows.get(peer)
        if session is None:
            timeout_ms = self._settings.election_timeout_ms
            session = self.follows[peer] = FollowSession(self._unused, timeout_ms)
        return session

    def _on_change(self, peer: BrokerId) -> None:
        self.on_change(peer)

    def can_do(self, peer: BrokerId, ability: Ability) -> bool:
        """Whether the release at `peer` is known to have an ability."""
        follow = self.follows.get(peer)
        return follow is not None and ability in follow.abilities

    def cannot_do(self, peer: BrokerId, ability: Ability) -> bool:
        """Whether the release at `peer` is known to lack an ability; False before its first
        heartbeat."""
        follow = self.follows.get(peer)
        return follow is not None and follow.is_known and ability not in follow.abilities

    def contact_with(self, peer: BrokerId) -> int | None:
        """Counts the periods in which `peer`'s heartbeats arrived without a gap; None during a
        gap."""
        session = self.follows.get(peer)
        if session is None or not session.is_fresh(self._clock.monotonic_ms()):
            return None
        return session.contact

    def rtt_ms(self, peer: BrokerId) -> float:
        """The smoothed round trip to `peer`; 0 while unknown."""
        session = self.leads.get(peer)
        return 0.0 if session is None else session.rtt_ms

    def measured_round_trip_ms(self, peer: BrokerId) -> int | None:
        """The same in whole ms; None if `peer` has answered no heartbeat."""
        session = self.leads.get(peer)
        if session is None or session.answered_ms == NEVER_MS:
            return None
        return round(session.rtt_ms)

    def on_heartbeat_answer(
        self, peer: BrokerId, answer: HeartbeatAnswer, *, held_ms: int = 0
    ) -> list[tuple[GroupId, Epoch]]:
        """Returns the groups in which the peer refuses this broker, with its epochs there.
        `held_ms`: how long the peer kept the answer."""
        now = self._clock.monotonic_ms()
        refused = self.lead_session(peer).on_answer(answer, now, held_ms=held_ms)
        self.slowest_rtt_ms = int(max(session.rtt_ms for session in self.leads.values()))
        return refused

    def remove(self, peer: BrokerId) -> None:
        """A broker has left the cluster: drop all that is known of it."""
        for known in (self.leads, self.follows, self._last_contact_ms, self._losses):
            known.pop(peer, None)
        self._hung_up.discard(peer)

    # ---- contact ---------------------------------------------------------------------------------

    def on_received(self, peer: BrokerId) -> bool:
        """`peer` has sent a message; returns whether it counted as dead until now."""
        now = self._clock.monotonic_ms()
        silent_ms = now - self._last_contact_ms.get(peer, NEVER_MS)
        self._last_contact_ms[peer] = now
        if self._hung_up:
            self._hung_up.discard(peer)
        return silent_ms >= 2 * self._settings.election_timeout_ms

    def on_connected(self, peer: BrokerId) -> None:
        """A connection to `peer` is up."""
        self._losses[peer] = 0

    def on_lost(self, peer: BrokerId) -> bool:
        """The connection to `peer` has broken, or an attempt to connect has failed. Returns whether
        that says something about the peer: a killed process hangs up at once."""
        losses = self._losses[peer] = self._losses.get(peer, MEANINGFUL_LOSSES_MAX) + 1
        if losses > MEANINGFUL_LOSSES_MAX:
            return False
        self._hung_up.add(peer)
        return True

    def has_hung_up(self, peer: BrokerId) -> bool:
        """Whether `peer` broke the connection and has sent nothing since."""
        return peer in self._hung_up

    def is_alive(self, peer: BrokerId) -> bool:
        """Whether `peer` has sent anything within two election time-outs."""
        last_ms = self._last_contact_ms.get(peer, NEVER_MS)
        return self._clock.monotonic_ms() - last_ms < 2 * self._settings.election_timeout_ms

    def is_peer_alive(self, peer: BrokerId) -> bool:
        """The same; this broker itself always is."""
        return peer == self._self_id or self.is_alive(peer)

    def silent(self, peers: Iterable[BrokerId]) -> tuple[BrokerId, ...]:
        """Those of `peers` that are not alive; none if this process cannot tell after a pause."""
        limit = 2 * self._settings.election_timeout_ms
        if self._clock.monotonic_ms() - max(self.started_ms, self._forgiven_ms) < limit:
            return ()
        return tuple(one for one in peers if not self.is_alive(one))

    def silence_ms(self, peer: BrokerId) -> int | None:
        """How long ago `peer` last sent anything; None: never."""
        last_ms = self._last_contact_ms.get(peer)
        return None if last_ms is None else self._clock.monotonic_ms() - last_ms

    def forgive(self) -> bool:
        """Count no peer's silence so far: this process did not run, so it shows nothing.

        False if it did so shortly before: a broker that is always slow must not wait for dead peers
        for ever."""
        now = self._clock.monotonic_ms()
        if now - self._forgiven_ms < FORGIVE_FACTOR * self._settings.election_timeout_ms:
            return False
        self._forgiven_ms = now
        for session in self.follows.values():
            if session.last_contact_ms != NEVER_MS:
                session.last_contact_ms = now
                session.contact += 1
        return True


def _ignore(peer: BrokerId) -> None:
    """Nothing sends heartbeats yet."""
