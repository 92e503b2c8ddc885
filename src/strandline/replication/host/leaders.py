"""Who leads what, in the whole cluster.

Why:    every broker answers Metadata requests, also for partitions of which it holds no replica.
How:    a new leader announces itself to every broker at once, and all that it leads to each peer
        that connects; the highest epoch wins. One that leads no more says so alike, where no quorum
        answers, its log has failed, or it hears of no other leader: nobody leads in that epoch any
        more. Who connects tells the peer, too, what it takes that one to lead, and a process that
        began anew since says which of it is over. Whatever connects last brings that with it: of
        two directions one may come up late. (To earlier releases such a leader leads on; one that
        begins anew believes what it is told of itself until the next epoch.)
Owns:   one entry per group, and which of them end with this broker; one table per broker.
Source: design section 3 (each broker answers from what it has)."""

from collections.abc import Callable

from strandline.model.ids import CONTROLLER_GROUP, NO_BROKER, BrokerId, Epoch, GroupId
from strandline.replication.wire import LeaderEntry


class Leaders:
    """See the module."""

    def __init__(self, on_change: Callable[[GroupId], None]) -> None:
        self._entries: dict[GroupId, LeaderEntry] = {}
        self._on_change = on_change
        # Of which this broker was the last leader that is known of.
        self._own_over: set[GroupId] = set()

    def learn(self, entry: LeaderEntry) -> None:
        """Take an announcement in; older epochs are ignored, and who has given up never leads in
        the same epoch again."""
        known = self._entries.get(entry.group)
        if known is None or _rank(known) < _rank(entry):
            self._entries[entry.group] = entry
            if entry.leader != NO_BROKER:
                self._own_over.discard(entry.group)
            self._on_change(entry.group)

    def end(self, group: GroupId, epoch: Epoch) -> LeaderEntry:
        """This broker leads the group no more, in whose `epoch` it did; what the others are told.

        It is told again to whoever connects, by this broker alone: the others may not hear that
        the group is gone."""
        entry = LeaderEntry(group, epoch, NO_BROKER)
        self.learn(entry)
        if self._entries[group] == entry:
            self._own_over.add(group)
        return entry

    @property
    def own_over(self) -> list[LeaderEntry]:
        """What `end` was called for, where nobody else leads by now."""
        return [self._entries[group] for group in self._own_over]

    def get(self, group: GroupId) -> LeaderEntry | None:
        """The latest leader known of `group`."""
        return self._entries.get(group)

    def led_by(self, broker: BrokerId) -> list[LeaderEntry]:
        """Everything that `broker` leads as far as known."""
        return [entry for entry in self._entries.values() if entry.leader == broker]

    def forget(self, group: GroupId) -> None:
        """The group is gone."""
        self._entries.pop(group, None)
        self._own_over.discard(group)

    @property
    def controller(self) -> LeaderEntry | None:
        """The controller."""
        return self._entries.get(CONTROLLER_GROUP)


def _rank(entry: LeaderEntry) -> tuple[Epoch, bool]:
    return entry.epoch, entry.leader == NO_BROKER
