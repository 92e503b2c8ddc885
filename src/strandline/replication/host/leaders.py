"""Which broker leads which group, in the whole cluster.

Why:    every broker answers Metadata requests, also for partitions without a replica on it.
How:    - A new leader announces itself to every broker; the highest epoch wins.
        - A leader that steps down (no quorum, failed log, no other leader known) announces that its
          epoch has no leader any more. Earlier releases ignore that.
        - On each lane that connects, a broker sends all that it leads, and all that it takes the
          peer to lead; a restarted process answers which of that is over.
Owns:   one entry per group, and the groups whose last leader is this broker; one table per broker.
Source: design section 3 (each broker answers from what it has)."""

from collections.abc import Callable

from strandline.model.ids import CONTROLLER_GROUP, NO_BROKER, BrokerId, Epoch, GroupId
from strandline.replication.wire import LeaderEntry


class Leaders:
    """See the module."""

    def __init__(self, on_change: Callable[[GroupId], None]) -> None:
        self._entries: dict[GroupId, LeaderEntry] = {}
        self._on_change = on_change
        # Groups without a leader whose last known leader was this broker.
        self._own_ended: set[GroupId] = set()

    def learn(self, entry: LeaderEntry) -> None:
        """Apply an announcement. Older epochs are ignored; a leader that stepped down never leads
        in the same epoch again."""
        known = self._entries.get(entry.group)
        if known is None or _rank(known) < _rank(entry):
            self._entries[entry.group] = entry
            if entry.leader != NO_BROKER:
                self._own_ended.discard(entry.group)
            self._on_change(entry.group)

    def end(self, group: GroupId, epoch: Epoch) -> LeaderEntry:
        """This broker no longer leads the group in `epoch`. Returns the entry for the others; only
        this broker repeats it to peers that connect, because others may not learn that the group is
        deleted."""
        entry = LeaderEntry(group, epoch, NO_BROKER)
        self.learn(entry)
        assert self._entries[group].epoch >= epoch, "the highest epoch wins"
        if self._entries[group] == entry:
            self._own_ended.add(group)
        return entry

    @property
    def own_ended(self) -> list[LeaderEntry]:
        """The entries of `end` for groups that still have no leader."""
        return [self._entries[group] for group in self._own_ended]

    def get(self, group: GroupId) -> LeaderEntry | None:
        """The latest known leader of `group`."""
        return self._entries.get(group)

    def led_by(self, broker: BrokerId) -> list[LeaderEntry]:
        """Everything that `broker` leads, as far as known."""
        return [entry for entry in self._entries.values() if entry.leader == broker]

    def remove(self, group: GroupId) -> None:
        """The group is deleted."""
        self._entries.pop(group, None)
        self._own_ended.discard(group)

    @property
    def controller(self) -> LeaderEntry | None:
        """The leader of the controller's group."""
        return self._entries.get(CONTROLLER_GROUP)


def _rank(entry: LeaderEntry) -> tuple[Epoch, bool]:
    return entry.epoch, entry.leader == NO_BROKER
