"""The groups that this broker leads: what is done for all of them at once.

Why:    a broker holds replicas of thousands of groups, and its tick comes twenty times a second: it
        must not look at those that have nothing to do.
How:    a replica is here from the moment it leads until it leads no more. Of these, only those with
        appends under way are asked whether a follower has stalled.
Owns:   both sets; one per broker.
Source: design section 5 ("an idle group costs nothing")."""

from typing import TYPE_CHECKING

from strandline.model.ids import BrokerId, GroupId

if TYPE_CHECKING:
    from strandline.replication.replica.replica import Replica


class LedGroups:
    """See the module."""

    def __init__(self) -> None:
        self._led: dict[GroupId, Replica] = {}
        # Those that sent something, until all of it is acknowledged.
        self._sending: dict[GroupId, Replica] = {}

    def add(self, replica: "Replica") -> None:
        """The replica leads."""
        self._led[replica.group] = replica

    def remove(self, replica: "Replica") -> None:
        """It leads no more."""
        self._led.pop(replica.group, None)
        self._sending.pop(replica.group, None)

    def has_sent(self, replica: "Replica") -> None:
        """An append left, and waits for its acknowledgement."""
        self._sending[replica.group] = replica

    @property
    def all(self) -> "list[Replica]":
        """The leaders here, by group."""
        return [self._led[group] for group in sorted(self._led)]

    def reset(self, peer: BrokerId) -> None:
        """What was in flight to `peer` is lost, or a fresh connection is up."""
        for replica in self.all:
            replica.on_peer_reset(peer)

    def on_untold(self, peer: BrokerId) -> None:
        """What `peer` was told of marks may be lost, and nothing else."""
        for replica in self.all:
            if replica.leading is not None:
                replica.leading.on_untold(peer)

    def ask_returned(self, peer: BrokerId) -> None:
        """`peer` is heard again: what it acknowledged meanwhile may be lost, and who asked in vain
        would wait for long before the next time."""
        for group in sorted(self._sending):
            leading = self._sending[group].leading
            if leading is not None:
                leading.on_returned(peer)

    def ask_silent(self, now_ms: int) -> None:
        """Have followers say how far they are that have acknowledged nothing for too long."""
        for group in sorted(self._sending):
            replica = self._sending[group]
            if replica.leading is None or not replica.leading.has_inflight:
                del self._sending[group]
                continue
            for peer in replica.leading.stalled_peers(now_ms):
                replica.leading.on_stalled(peer)
