"""A leader's lease: until when no other leader can have been elected.

Why:    a leader that was stopped or cut off must not answer stale reads, and a quorum round trip
        for each read is too slow.
How:    `BoundVotes` computes for how long the voters that answered heartbeats are bound to vote for
        no other replica; this class caches it. A change of the configuration ends the lease.
Owns:   the time at which the lease ends.
Source: Raft thesis 6.4.1; design section 5; decision 0035."""

from msgspec import UNSET

from strandline.replication.replica.state import ReplicaState
from strandline.replication.shared import Shared


class Lease:
    """See the module; one per replica."""

    def __init__(self, replica: ReplicaState, shared: Shared) -> None:
        self._replica = replica
        self._clock = shared.clock
        self._bound_votes = shared.bound_votes
        self._gone_ms = 2 * shared.settings.election_timeout_ms
        self._end_ms = 0

    @property
    def is_held(self) -> bool:
        """Whether a replica that leads holds its lease now."""
        now = self._clock.monotonic_ms()
        if now >= self._end_ms:
            self._end_ms = max(self._end_ms, self._bound_votes.lease_end_ms(self._replica))
        return now < self._end_ms

    @property
    def is_long_gone(self) -> bool:
        """Whether a leader has had no lease for so long that another one may have been appointed.
        Only for leases that need more than a majority: a leader without a majority steps down
        anyway."""
        replica = self._replica
        if replica.raft.state.configuration.floor is UNSET or self.is_held:
            return False
        since_ms = max(self._end_ms, replica.leading_since_ms)
        return self._clock.monotonic_ms() - since_ms >= self._gone_ms

    def end(self) -> None:
        """End the lease: the replica no longer leads, or other voters may now elect a leader."""
        self._end_ms = min(self._end_ms, self._clock.monotonic_ms())
