"""The groups that this broker leads, and the work on all of them at once.

Why:    a broker holds thousands of replicas and ticks twenty times a second: a tick must not visit
        idle ones.
How:    replicas are here while they lead; only those with appends in flight are checked.
Owns:   both sets; one per broker.
Source: design section 5 ("an idle group costs nothing")."""

from strandline.model.ids import BrokerId, Epoch, GroupId
from strandline.replication.replica.replica import Replica


class LedGroups:
    """See the module."""

    def __init__(self) -> None:
        self._led: dict[GroupId, Replica] = {}
        # Leaders with unacknowledged appends.
        self._sending: dict[GroupId, Replica] = {}

    def add(self, replica: Replica) -> None:
        """The replica leads."""
        assert replica.is_leader and replica.group not in self._led
        self._led[replica.group] = replica

    def remove(self, replica: Replica) -> None:
        """It no longer leads."""
        self._led.pop(replica.group, None)
        self._sending.pop(replica.group, None)

    def has_sent(self, replica: Replica) -> None:
        """An append has left, and waits for its acknowledgement."""
        assert replica.group in self._led
        self._sending[replica.group] = replica

    @property
    def all(self) -> list[Replica]:
        """The leaders here, by group."""
        return [self._led[group] for group in sorted(self._led)]

    def leads(self, group: GroupId, epoch: Epoch) -> bool:
        """Whether this broker leads the group in that epoch."""
        replica = self._led.get(group)
        return replica is not None and replica.epoch == epoch

    def reset(self, peer: BrokerId) -> None:
        """Appends in flight to `peer` are lost, or its connection is new."""
        for replica in self.all:
            replica.on_peer_reset(peer)

    def on_marks_lost(self, peer: BrokerId) -> None:
        """Marks sent to `peer` may be lost, and nothing else."""
        for replica in self.all:
            if replica.leadership is not None:
                replica.leadership.followers.on_marks_lost(peer)

    def probe_returned(self, peer: BrokerId) -> None:
        """`peer` is alive again: acknowledgements may be lost, and streams that probed it in vain
        would wait long before the next probe."""
        for group in sorted(self._sending):
            leadership = self._sending[group].leadership
            if leadership is not None:
                leadership.followers.on_returned(peer)

    def probe_stalled(self, now_ms: int) -> None:
        """Probe followers that have acknowledged nothing for too long."""
        for group in sorted(self._sending):
            replica = self._sending[group]
            if replica.leadership is None or not replica.leadership.followers.has_inflight:
                del self._sending[group]
                continue
            for peer in replica.leadership.followers.stalled_peers(now_ms):
                replica.leadership.followers.on_stalled(peer)
