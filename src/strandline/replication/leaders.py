"""Who leads what, in the whole cluster.

Why:    every broker answers Metadata requests, also for partitions of which it holds no replica.
How:    a new leader announces itself to every broker at once, and all that it leads to each peer
        that connects; the highest epoch wins. One that has given up, as no quorum answers, its
        log has failed, or nobody else leads instead, says so alike: nobody leads in its epoch any
        more. Whoever connects to a peer tells what it takes that one to lead, and is told what of
        it is over: an announcement may have been missed, and a process that starts anew leads
        nothing. (To earlier releases such a leader leads on.)
Owns:   one entry per group; one table per broker.
Source: design section 3 (each broker answers from what it has)."""

from collections.abc import Callable

from strandline.model.ids import CONTROLLER_GROUP, NO_BROKER, BrokerId, Epoch, GroupId
from strandline.replication.wire import LeaderEntry


class Leaders:
    """See the module."""

    def __init__(self, on_change: Callable[[GroupId], None]) -> None:
        self._entries: dict[GroupId, LeaderEntry] = {}
        self._on_change = on_change

    def learn(self, entry: LeaderEntry) -> None:
        """Take an announcement in; older epochs are ignored, and who has given up never leads in
        the same epoch again."""
        known = self._entries.get(entry.group)
        if known is None or _rank(known) < _rank(entry):
            self._entries[entry.group] = entry
            self._on_change(entry.group)

    def get(self, group: GroupId) -> LeaderEntry | None:
        """The latest leader known of `group`."""
        return self._entries.get(group)

    def led_by(self, broker: BrokerId) -> list[LeaderEntry]:
        """Everything that `broker` leads as far as known."""
        return [entry for entry in self._entries.values() if entry.leader == broker]

    def forget(self, group: GroupId) -> None:
        """The group is gone."""
        self._entries.pop(group, None)

    @property
    def controller(self) -> LeaderEntry | None:
        """The controller."""
        return self._entries.get(CONTROLLER_GROUP)


def _rank(entry: LeaderEntry) -> tuple[Epoch, bool]:
    return entry.epoch, entry.leader == NO_BROKER
