"""Election timers of the followers here, and check-quorum of the leaders here.

Why:    timers belong to the broker, not to the group: idle groups have none of their own.
How:    each tick of the broker
        - checks the election time-outs of replicas that no living leader's session covers;
        - checks the quorum of leaders here, only while some peer is silent.

        `PeerContacts` knows the peers, `BoundVotes` the votes that leaders count on. A tick that
        comes far too late (the process was stopped or starved) shows nothing about the peers:
        timers start again.
Owns:   the timers, and which leaders' quorums are unconfirmed; one per broker.
Source: Raft thesis 3.4 and 6.2; design sections 5 and 8."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from strandline.base.clock import Clock
from strandline.model.ids import NO_BROKER, BrokerId, Epoch, GroupId
from strandline.replication.liveness import election_timeouts
from strandline.replication.liveness.bound_votes import BoundVotes
from strandline.replication.liveness.election_timeouts import ELECTION_MS, ELECTION_ROUND_TRIPS
from strandline.replication.liveness.peer_contacts import PeerContacts
from strandline.replication.liveness.sessions import NEVER_MS, FollowSession
from strandline.replication.replica.state import ReplicaState
from strandline.replication.settings import ReplicationSettings
from strandline.replication.wire import Heartbeat

RTT_FACTOR = 4
PROMISE_MS = 100
"""The time of a vote delegation beside its round trip: both sides write state."""
PROMISE_ROUND_TRIPS = 2
FRESH_PATIENCE_MS = 10_000
"""How long the other voters of a new group leave its lead to the preferred broker while it is
alive: a broker that creates thousands of groups opens its own late."""
CANDIDACY_COUNT_MAX = 128
"""The most elections under way from here; other replicas wait. When a broker with thousands of
leaders dies, unlimited elections would keep all brokers so busy that living leaders fell silent,
too."""


class LedReplicas(Protocol):
    """The replicas that this broker leads."""

    @property
    def all(self) -> Sequence[ReplicaState]:
        """All of them, by group."""


class Liveness:
    """See the module."""

    def __init__(
        self,
        *,
        self_id: BrokerId,
        clock: Clock,
        rng: random.Random,
        settings: ReplicationSettings,
        session: int,
        replicas: Mapping[GroupId, ReplicaState],
        remembered: Callable[[GroupId], Epoch],
    ) -> None:
        """`remembered`: the epoch of a group that is not open here, 0 for none. A later one may be
        lost: the data directory may be an old one."""
        self._clock = clock
        self._rng = rng
        self._settings = settings
        self.contacts = PeerContacts(
            self_id=self_id, clock=clock, settings=settings, session=session
        )
        self.bound_votes = BoundVotes(self.contacts, clock=clock, settings=settings)
        # {peer: session}, as `contacts` keeps them.
        self._leads = self.contacts.leads
        self._follows = self.contacts.follows
        self._replicas = replicas
        self._remembered = remembered
        # {group: replica} with a timer of its own; a living leader's session covers all others.
        self._uncovered: dict[GroupId, ReplicaState] = {}
        # {group: replica} that may know no leader.
        self._leaderless: dict[GroupId, ReplicaState] = {}
        # {group: replica} whose candidacy is undecided.
        self._candidates: dict[GroupId, ReplicaState] = {}
        # Silent peers whose groups are already in `_uncovered`.
        self._swept: set[BrokerId] = set()
        # Peers that had not answered for too long at the last check.
        self._silent: frozenset[BrokerId] = frozenset()
        # Leaders here that may have no quorum while these peers are silent.
        self._quorum_unconfirmed: dict[GroupId, ReplicaState] = {}

    # ---- peers -----------------------------------------------------------------------------------

    def on_lost(self, peer: BrokerId) -> None:
        """The connection to `peer` has broken, or an attempt to connect has failed.

        A killed process hangs up at once. Voters stay bound, but its followers can stand in a fixed
        order instead of at random."""
        if not self.contacts.on_lost(peer):
            return
        session = self._follows.get(peer)
        step_ms = ELECTION_MS + self.contacts.slowest_rtt_ms
        for group in session.followed if session is not None else ():
            replica = self._replicas.get(group)
            if replica is not None and replica.leader_id == peer:
                turn_ms = election_timeouts.turn_ms(replica, self._settings, step_ms)
                replica.timeout_ms = min(replica.timeout_ms, turn_ms)
                replica.look_ms = NEVER_MS

    def remove_peer(self, peer: BrokerId) -> None:
        """A broker has left the cluster: drop all that is known of it."""
        self._refresh_followers(self.contacts.follow_session(peer))
        self.contacts.remove(peer)
        self._swept.discard(peer)

    def on_heartbeat(
        self, peer: BrokerId, heartbeat: Heartbeat
    ) -> list[tuple[ReplicaState, Epoch]]:
        """Returns the replicas to which a newly announced leadership of `peer` matters."""
        session = self.contacts.follow_session(peer)
        now = self._clock.monotonic_ms()
        if not session.is_fresh(now):
            session.contact += 1
        changes, uncovered = session.on_heartbeat(heartbeat, now)
        for group in uncovered:
            replica = self._replicas.get(group)
            if replica is not None:
                self._leader_is_gone(replica)
        announced: list[tuple[ReplicaState, Epoch]] = []
        for group, epoch in changes:
            replica = self._replicas.get(group)
            if replica is None:
                session.announced(group, self._remembered(group), vouches=False)
            elif epoch > 0:
                has_lost_state = replica.raft.has_lost_state
                session.announced(group, replica.epoch, vouches=not has_lost_state)
                if replica.leader_id == peer and replica.epoch == epoch and not has_lost_state:
                    replica.last_contact_ms = session.last_contact_ms  # Not new to its core.
                else:
                    announced.append((replica, epoch))
        return announced

    # ---- replicas --------------------------------------------------------------------------------

    def add(self, replica: ReplicaState) -> None:
        """A replica opens; the preferred broker of a new group stands for election at once."""
        replica.last_contact_ms = self._clock.monotonic_ms()
        replica.timeout_ms = self._draw_timeout(replica)
        if replica.is_fresh and replica.is_preferred:
            replica.timeout_ms = 0
        self.moved_on(replica)
        self._watch(replica)

    def remove(self, replica: ReplicaState) -> None:
        """A replica closes."""
        self._uncovered.pop(replica.group, None)
        self._leaderless.pop(replica.group, None)
        for session in self._leads.values():
            session.unlead(replica.group)

    def on_leading(self, replica: ReplicaState, members: Iterable[BrokerId]) -> None:
        """The replica leads its epoch, with these members."""
        assert replica.is_leader
        if self._silent:
            self._quorum_unconfirmed[replica.group] = replica
        self._uncovered.pop(replica.group, None)
        wanted = set(members)
        for peer in wanted:
            if peer != replica.self_id:
                self.contacts.lead_session(peer).lead(replica.group, replica.epoch)
        for peer, session in self._leads.items():
            if peer not in wanted:
                session.unlead(replica.group)

    def on_recovering(self, replica: ReplicaState) -> None:
        """A follower of this leader has reported that it lost its log."""
        self._quorum_unconfirmed[replica.group] = replica

    def on_following(self, replica: ReplicaState) -> None:
        """The replica's epoch, role or leader has changed, and it does not lead."""
        assert not replica.is_leader
        for session in self._leads.values():
            session.unlead(replica.group)
        self.moved_on(replica)
        replica.timeout_ms = self._draw_timeout(replica)
        self.refresh(replica)

    def on_handed_over(self, replica: ReplicaState) -> int:
        """The replica has handed leadership over. Returns how many ms the next election may take;
        until then its peers learn nothing, because they would stand, too."""
        replica.last_contact_ms = self._clock.monotonic_ms()
        self.moved_on(replica)
        replica.timeout_ms = self._draw_timeout(replica)
        self.refresh(replica)
        round_trips_ms = int(ELECTION_ROUND_TRIPS * self.contacts.slowest_rtt_ms)
        return self._settings.election_timeout_ms + round_trips_ms

    @property
    def promise_patience_ms(self) -> int:
        """How long a leader about to hand over waits for the delegated votes."""
        round_trips_ms = int(PROMISE_ROUND_TRIPS * self.contacts.slowest_rtt_ms)
        return min(PROMISE_MS + round_trips_ms, self._settings.election_timeout_ms)

    def on_election_priority(self, replica: ReplicaState) -> None:
        """The election priority of the replica's group has changed."""
        if not replica.is_leader:
            replica.timeout_ms = self._draw_timeout(replica)
            replica.look_ms = NEVER_MS

    def moved_on(self, replica: ReplicaState) -> None:
        """The replica's core is in a later epoch, durable or not: answers no longer confirm an
        earlier leader. Or its log has recovered: its answers count again."""
        vouches = not replica.raft.has_lost_state
        for follow in self._follows.values():
            follow.moved_on(replica.group, replica.epoch, vouches=vouches)
        replica.look_ms = NEVER_MS

    def await_election(self, replica: ReplicaState) -> None:
        """Delay the replica's candidacy while it, or a candidate that it voted for, may win:
        otherwise all would stand at once.

        Its leader's last contact stays as it is: votes are refused by that."""
        delay_ms = election_timeouts.draw_pause_ms(
            replica, self._settings, self._rng, slowest_rtt_ms=self.contacts.slowest_rtt_ms
        )
        replica.stand_after_ms = self._clock.monotonic_ms() + delay_ms

    def refresh(self, replica: ReplicaState) -> None:
        """Check the replica's own timer from now on, unless its leader's heartbeats cover it."""
        if not replica.is_leader:
            self._watch(replica)

    def _watch(self, replica: ReplicaState) -> None:
        replica.look_ms = NEVER_MS
        self._uncovered[replica.group] = replica
        self._leaderless[replica.group] = replica

    # ---- time ------------------------------------------------------------------------------------

    def forgive(self) -> bool:
        """Restart all timers: this process did not run, so silence shows nothing.

        False if it did so shortly before: a broker that is always slow must not wait for dead peers
        for ever."""
        if not self.contacts.forgive():
            return False
        now = self._clock.monotonic_ms()
        for replica in self._uncovered.values():
            replica.last_contact_ms = now
        return True

    def found_leaders(self) -> list[tuple[ReplicaState, BrokerId, Epoch]]:
        """Replicas that know no leader, although a living peer's session says that it leads: a
        candidate forgets its leader, and without changes nothing would name it again."""
        now = self._clock.monotonic_ms()
        fresh = [item for item in self._follows.items() if item[1].is_fresh(now)]
        met: list[GroupId] = []
        found: list[tuple[ReplicaState, BrokerId, Epoch]] = []
        for group, replica in self._leaderless.items():
            if replica.is_leader or replica.leader_id != NO_BROKER:
                met.append(group)
                continue
            epoch = replica.epoch
            for peer, session in fresh:
                if session.covers(group, epoch):
                    found.append((replica, peer, session.followed[group]))
        for group in met:
            del self._leaderless[group]
        return found

    def timed_out(self) -> list[ReplicaState]:
        """Replicas whose election time-out has passed; their timers start again. Observers learn by
        it that there is no leader."""
        now = self._clock.monotonic_ms()
        self._watch_groups_of_silent_peers(now)
        due: list[ReplicaState] = []
        watching: list[ReplicaState] = []
        covered: list[GroupId] = []
        self._drop_decided(now)
        room = CANDIDACY_COUNT_MAX - len(self._candidates)
        for group, replica in self._uncovered.items():
            if len(due) >= room:
                break
            if now < replica.look_ms:
                continue
            if replica.is_leader or self._is_covered(replica, now):
                covered.append(group)
                continue
            sign_ms = max(self.bound_votes.last_sign_ms(replica), self.bound_votes.left_ms(replica))
            due_ms = max(replica.stand_after_ms, sign_ms + replica.timeout_ms)
            if now >= due_ms and self._leaves_first_turn(replica, now):
                due_ms = now + self._settings.election_timeout_ms
            if now < due_ms:
                replica.look_ms = due_ms
                continue
            if replica.self_id in replica.configuration.all_voters:
                due.append(replica)
                self._candidates[group] = replica
            elif len(watching) < CANDIDACY_COUNT_MAX:
                watching.append(replica)
            else:
                continue
            self._leaderless[group] = replica
            self.await_election(replica)
        assert len(self._candidates) <= CANDIDACY_COUNT_MAX
        for group in covered:
            del self._uncovered[group]
        due += watching
        for replica in due:  # Candidates that fail go behind the others.
            self._uncovered[replica.group] = self._uncovered.pop(replica.group)
        return due

    def _leaves_first_turn(self, replica: ReplicaState, now: int) -> bool:
        """Whether a new group's preferred broker lives and has yet to stand."""
        preferred = replica.election_priority.preferred
        return (
            replica.is_fresh
            and preferred != replica.self_id
            and now - replica.last_contact_ms < FRESH_PATIENCE_MS
            and self.contacts.is_alive(preferred)
            and not self.contacts.has_hung_up(preferred)
        )

    def _drop_decided(self, now: int) -> None:
        self._candidates = {
            group: replica
            for group, replica in self._candidates.items()
            if replica.leader_id == NO_BROKER and now < replica.stand_after_ms
        }

    def without_quorum(self, led: LedReplicas) -> list[ReplicaState]:
        """Leaders here without answers from a quorum for two election time-outs, or with too many
        lost logs in it for any of these to rejoin.

        All are checked once when a peer falls silent; later only new leaders and those with new
        members or newly lost logs."""
        now = self._clock.monotonic_ms()
        limit = 2 * self._settings.election_timeout_ms
        silent = frozenset(p for p, s in self._leads.items() if now - s.answered_ms >= limit)
        if silent != self._silent:
            self._silent = silent
            if silent:
                self._quorum_unconfirmed = {replica.group: replica for replica in led.all}
        if not self._quorum_unconfirmed:
            return []
        lost: list[ReplicaState] = []
        since_ms = now - limit - RTT_FACTOR * self.contacts.slowest_rtt_ms
        for group, replica in list(self._quorum_unconfirmed.items()):
            if not replica.is_leader:
                del self._quorum_unconfirmed[group]
            elif replica.leading_since_ms <= since_ms:
                configuration = replica.configuration
                heard = [peer for peer in configuration.all_voters if peer not in silent]
                counted = [peer for peer in heard if not replica.has_no_way_back(peer)]
                if configuration.wins_election(heard) and configuration.blocks_election(counted):
                    del self._quorum_unconfirmed[group]
                else:
                    lost.append(replica)
        lost.sort(key=lambda replica: replica.group)
        return lost

    def _leader_is_gone(self, replica: ReplicaState) -> None:
        """Its leader has restarted or no longer leads: do not wait for silence, but for a random
        time-out."""
        gone_ms = self._clock.monotonic_ms() - self._settings.election_timeout_ms
        replica.last_contact_ms = max(replica.last_contact_ms, gone_ms)
        self.refresh(replica)

    def _watch_groups_of_silent_peers(self, now: int) -> None:
        for peer, session in self._follows.items():
            if session.is_fresh(now):
                self._swept.discard(peer)
            elif peer not in self._swept:
                self._swept.add(peer)
                self._refresh_followers(session)

    def _refresh_followers(self, session: FollowSession) -> None:
        for replica in filter(None, map(self._replicas.get, session.followed)):
            self.refresh(replica)

    def _is_covered(self, replica: ReplicaState, now: int) -> bool:
        session = self._follows.get(replica.leader_id)
        return (
            session is not None
            and session.covers(replica.group, replica.epoch)
            and session.is_fresh(now)
        )

    def _draw_timeout(self, replica: ReplicaState) -> int:
        leader = replica.leader_id
        rtt_ms = self.contacts.rtt_ms(leader) if leader != NO_BROKER else 0.0
        return election_timeouts.draw_ms(
            replica,
            self._settings,
            self._rng,
            slowest_rtt_ms=self.contacts.slowest_rtt_ms,
            leader_rtt_ms=int(rtt_ms),
        )
