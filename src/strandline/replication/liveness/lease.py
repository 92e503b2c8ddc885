"""A leader's lease: whether nobody else can have been elected yet.

Why:    a leader that was stopped or cut off must not answer from the past, and to ask a quorum for
        each read would cost a round trip.
How:    voters that have answered a heartbeat vote for nobody else, nor for themselves, for an
        election time-out, whatever epoch they are in by then; when enough of them are past that is
        reckoned by the `liveness`, and remembered here until then.
        It rests on the voters of the present configuration: whatever changes that ends it.
Owns:   until when it is known to last.
Source: Raft thesis 6.4.1; design section 5; decision 0035."""

from typing import TYPE_CHECKING

from msgspec import UNSET

if TYPE_CHECKING:
    from strandline.replication.replica.replica import Replica


class Lease:
    """See the module; one per replica."""

    def __init__(self, replica: "Replica") -> None:
        self._replica = replica
        self._end_ms = 0

    @property
    def is_held(self) -> bool:
        """Whether it lasts, for a replica that leads."""
        liveness, now = self._replica.host.liveness, self._replica.host.clock.monotonic_ms()
        if now >= self._end_ms:
            self._end_ms = max(self._end_ms, liveness.lease_end_ms(self._replica))
        return now < self._end_ms

    @property
    def is_long_gone(self) -> bool:
        """Of a leader that needs more than a majority for it: whether it has been without for so
        long that somebody else may have been seated. Without a majority it leads no more."""
        replica = self._replica
        if replica.configuration.floor is UNSET or self.is_held:
            return False
        since_ms = max(self._end_ms, replica.leading_since_ms)
        limit_ms = 2 * replica.host.settings.election_timeout_ms
        return replica.host.clock.monotonic_ms() - since_ms >= limit_ms

    def end(self) -> None:
        """The replica leads no more, or others than those whom the lease rests on may elect a
        leader: it is reckoned anew."""
        self._end_ms = min(self._end_ms, self._replica.host.clock.monotonic_ms())
