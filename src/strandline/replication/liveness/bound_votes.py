"""When a vote is bound to a leader: the follower's refusal, and the lease that rests on it.

Why:    a leader answers reads while no other leader can be elected. It knows that from the voters
        that answered its heartbeats: for an election time-out, they vote for no other replica.
How:    a follower is bound while its leader lives, and for an election time-out after it left that
        leader's epoch on another replica's message. A leader's lease ends with the earliest bound
        vote that a quorum needs; it counts only a share of the time-out (`lease_ratio`), because
        clocks drift.
Owns:   nothing; one per broker.
Source: Raft thesis 4.2.3 and 6.4.1; design section 5; decision 0035."""

from strandline.base.clock import Clock
from strandline.model.ids import NO_BROKER, BrokerId
from strandline.raft.group.configuration import Configuration
from strandline.replication.liveness.peer_contacts import PeerContacts
from strandline.replication.liveness.sessions import NEVER_MS
from strandline.replication.replica.state import ReplicaState
from strandline.replication.settings import ReplicationSettings


class BoundVotes:
    """See the module."""

    def __init__(
        self, contacts: PeerContacts, *, clock: Clock, settings: ReplicationSettings
    ) -> None:
        self._contacts = contacts
        self._clock = clock
        self._settings = settings

    # ---- of followers here -----------------------------------------------------------------------

    def is_leader_alive(self, replica: ReplicaState, candidate: BrokerId = NO_BROKER) -> bool:
        """Whether a leader other than `candidate`, which leads no more, lives as far as known
        here."""
        now = self._clock.monotonic_ms()
        timeout = self._settings.election_timeout_ms
        if replica.has_restarted and now - self._contacts.started_ms < timeout:
            return True  # A promise from before the restart may still bind it.
        leader = replica.leader_id
        if leader not in (NO_BROKER, candidate) and now - self.last_sign_ms(replica) < timeout:
            return True
        # A core may not know its leader yet, or be busy. A leader whose heartbeats are not refused
        # counts on this replica.
        return any(
            peer != candidate
            and session.covers(replica.group, replica.epoch)
            and now - session.last_contact_ms < timeout
            for peer, session in self._contacts.follows.items()
        )

    def is_bound(self, replica: ReplicaState, candidate: BrokerId) -> bool:
        """Whether the replica must refuse `candidate`, itself included (leases rest on it): a
        leader lives, or does not know yet that the replica left its epoch on another replica's
        message."""
        if self.is_leader_alive(replica, candidate):
            return True
        timeout = self._settings.election_timeout_ms
        return self._clock.monotonic_ms() - self.left_ms(replica, candidate) < timeout

    def promised_ms(self, replica: ReplicaState) -> int:
        """For how long at most the lease of a leader, present or left on another replica's message,
        may count on the replica."""
        if replica.is_leader:
            return 0
        timeout = self._settings.election_timeout_ms
        if self.is_leader_alive(replica):
            return timeout
        return max(0, self.left_ms(replica) + timeout - self._clock.monotonic_ms())

    def left_ms(self, replica: ReplicaState, candidate: BrokerId = NO_BROKER) -> int:
        """When the replica last answered a leader, other than `candidate`, whose epoch it has
        left."""
        return max(
            (
                session.left_ms(replica.group)
                for peer, session in self._contacts.follows.items()
                if peer != candidate
            ),
            default=NEVER_MS,
        )

    def last_sign_ms(self, replica: ReplicaState) -> int:
        """When the replica's leader last gave a sign of life."""
        session = self._contacts.follows.get(replica.leader_id)
        if session is not None and session.covers(replica.group, replica.epoch):
            return max(replica.last_contact_ms, session.last_contact_ms)
        return replica.last_contact_ms

    # ---- of leaders here -------------------------------------------------------------------------

    @property
    def lease_ms(self) -> int:
        """How long the answer to a heartbeat extends a lease."""
        return int(self._settings.election_timeout_ms * self._settings.lease_ratio)

    def lease_end_ms(
        self, replica: ReplicaState, configuration: Configuration | None = None
    ) -> int:
        """Until when no other leader can be elected, or appointed under the promised write quorum;
        in the past without a lease. `configuration`: as if it were in force."""
        configuration = configuration or replica.configuration
        lease = self.lease_ms
        ends = {replica.self_id: 1 << 60}
        for peer in configuration.all_voters:
            session = self._contacts.leads.get(peer)
            if session is not None and session.is_confirmed(replica.group):
                ends[peer] = session.answered_sent_ms + lease
        for end in sorted(set(ends.values()), reverse=True):
            holders = [peer for peer, peer_end in ends.items() if peer_end >= end]
            if configuration.holds_lease(holders):
                return end
        return NEVER_MS
