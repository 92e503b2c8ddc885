"""Which followers a request waits for: only the others are throttled, or served by peers alone.

Why:    catch-up traffic must not slow a write quorum that needs the follower, nor the next leader.
How:    a follower is urgent unless it is an observer, or a write quorum keeps up without it.
Owns:   nothing; one per leading replica.
Source: design section 5."""

from collections.abc import Mapping

from strandline.model.ids import CONTROLLER_GROUP, BrokerId, Index
from strandline.replication.leader.follower_stream import FollowerStream
from strandline.replication.leader.tail import Tail
from strandline.replication.replica.state import ReplicaState
from strandline.replication.shared import Shared


class Urgency:
    """See the module. `streams`: {follower: how it is served}."""

    def __init__(
        self,
        replica: ReplicaState,
        shared: Shared,
        streams: Mapping[BrokerId, FollowerStream],
        tail: Tail,
    ) -> None:
        self._replica = replica
        self._streams = streams
        self._tail = tail
        self._clock = shared.clock
        self._contacts = shared.contacts
        self._resend_timeout_ms = shared.settings.resend_timeout_ms

    def is_copied_to(self, peer: BrokerId) -> bool:
        """Whether `peer` is to become a replica, and is none yet; all follow the controller."""
        replica = self._replica
        is_lasting = peer in replica.placed.all or replica.group == CONTROLLER_GROUP
        return self._is_observer(peer) and not is_lasting

    def _is_observer(self, peer: BrokerId) -> bool:
        """Whether no request ever waits for `peer`."""
        present = self._replica.configuration
        return peer in present.observers and peer not in present.all_voters

    def is_urgent(self, peer: BrokerId) -> bool:
        """Whether requests, or a transfer, wait until `peer` has the entries that it lacks."""
        return not (self._is_observer(peer) or self._can_spare(peer))

    def _can_spare(self, peer: BrokerId) -> bool:
        """Whether a write quorum keeps up without `peer`, and it is no transfer target."""
        replica = self._replica
        if peer == replica.raft.transferring_to:
            return False
        others = [other for other in self._streams if other != peer and self._keeps_up(other)]
        return replica.configuration.can_commit([replica.self_id, *others])

    def _keeps_up(self, peer: BrokerId) -> bool:
        """Whether `peer` takes its appends from the tail, and acknowledges them."""
        replica = self._replica
        progress = replica.raft.progress.get(peer)
        if progress is None or progress.is_probing or not self._contacts.is_peer_alive(peer):
            return False
        end = Index(replica.log.last_index + 1)
        now = self._clock.monotonic_ms()
        stream = self._streams[peer]
        is_silent = stream.inflight and now - stream.progress_ms >= self._resend_timeout_ms
        return progress.next_index >= min(self._tail.first_index, end) and not is_silent
