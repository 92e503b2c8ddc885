"""Which configuration is in force, and which replicas may stand for election under it.

Why:    a replica that stands for election must know whether it votes, and a removed replica must
        learn that it is one: the leader sends it nothing more.
How:    The last configuration in the log is in force, committed or not; a truncation brings the
        previous one back. Only voters stand for election, and replicas that were voters until an
        entry that may yet be lost.

        A voter that refuses its vote names a committed entry and the configuration in force there,
        if the asker is no member of it and the (epoch, index) of the asker's own configuration is
        not above that entry's. One of three things is then true:
            another configuration followed the asker's, and the asker lacks it
            the asker's configuration is not committed and never will be
            the asker's own configuration excludes it, too
        In the first two cases the asker lacks a committed entry and can never win; in the third the
        group does not need it. So it stops standing until its own configuration is above the one
        named. It still votes and follows: a later entry, which it has yet to get, may have added it
        again. None of this is durable, for the next refusal repeats it, and a late one is still
        true. The asker passes it on, because the voters that it knows may all have been removed.
Owns:   the index of the configuration in force; the latest removal that a voter reported.
Source: Raft thesis 4.1 and 4.2.3; Ongaro's note on single-server changes (2015)."""

from strandline.model.ids import BrokerId, Epoch, Index
from strandline.raft.events import ConfigurationChanged, PrefixDropped
from strandline.raft.group.configuration import Configuration
from strandline.raft.messages import Removal
from strandline.raft.state import RaftState


class Membership:
    """See the module."""

    def __init__(self, state: RaftState) -> None:
        self._state = state
        self._index = self._last()[0]
        # The latest removal that a refusal reported to this replica.
        self._reported_removal: Removal | None = None

    @property
    def index(self) -> Index:
        """The index of the configuration in force; below the log's start when it is not there."""
        return self._index

    @property
    def is_committed(self) -> bool:
        """Whether the configuration in force is known to be committed."""
        return self._index <= self._state.commit

    @property
    def may_campaign(self) -> bool:
        """Whether this replica may stand for election."""
        state = self._state
        if self._reported_removal is not None and _removes(
            self._reported_removal, state.self_id, *self.position
        ):
            return False
        if state.self_id in state.configuration.all_voters:
            return True
        return not self.is_committed and state.self_id in self._voters_before()

    @property
    def position(self) -> tuple[Epoch, Index]:
        """Epoch and index of the entry that brought the configuration in force."""
        return self._state.log.epoch_at(self._index), self._index

    def removal_of(self, broker: BrokerId, position: tuple[Epoch, Index]) -> Removal | None:
        """Why `broker`, whose configuration stands at `position`, need not stand for election."""
        removal = self._last_committed()
        if self._reported_removal is not None and self._reported_removal.index > removal.index:
            removal = self._reported_removal
        return removal if _removes(removal, broker, *position) else None

    def on_removal_reported(self, removal: Removal) -> None:
        """A voter refused this replica because it was removed."""
        if self._reported_removal is None or removal.index > self._reported_removal.index:
            self._reported_removal = removal

    def refresh(self) -> None:
        """The log gained or lost entries, or was reset: find the configuration in force."""
        state = self._state
        index, configuration = self._last()
        if index == self._index and configuration == state.configuration:
            return
        assert index <= state.log.last_index and configuration.voters, (index, configuration)
        self._index = index
        state.configuration = configuration
        state.effects.append(ConfigurationChanged(index, configuration, self.is_committed))

    def on_prefix_dropped(self, event: PrefixDropped) -> None:
        """Retention: the last configuration of the removed part becomes the start's."""
        state = self._state
        assert event.first_index - 1 <= state.commit, "only committed entries are dropped"
        for index, configuration in state.log.configurations:
            if index < event.first_index:
                state.start_configuration = configuration
        state.log.drop_prefix(event.first_index, event.start_offset)
        self._index = self._last()[0]

    def on_commit(self, before: Index) -> None:
        """The commit went up from `before`: report the configurations that it committed."""
        state = self._state
        for index, configuration in state.log.configurations:
            if before < index <= state.commit:
                state.effects.append(ConfigurationChanged(index, configuration, committed=True))

    def _voters_before(self) -> tuple[BrokerId, ...]:
        """The voters before the last change of voters that is not known to be committed.

        More than one entry may have come since: a leader may lower the write quorum after it."""
        state = self._state
        present = set(state.configuration.all_voters)
        for index, configuration in reversed(state.log.configurations):
            if index <= state.commit or set(configuration.all_voters) != present:
                return configuration.all_voters
        return state.start_configuration.all_voters

    def _last_committed(self) -> Removal:
        state = self._state
        in_force = state.start_configuration
        for index, configuration in state.log.configurations:
            if index <= state.commit:
                in_force = configuration
        return Removal(state.log.epoch_at(state.commit), state.commit, in_force)

    def _last(self) -> tuple[Index, Configuration]:
        state = self._state
        if state.log.configurations:
            return state.log.configurations[-1]
        return Index(state.log.first_index - 1), state.start_configuration


def _removes(removal: Removal, broker: BrokerId, epoch: Epoch, index: Index) -> bool:
    """Whether it settles that `broker`, whose configuration has this position, is no member."""
    is_settled = removal.index >= 0 and (epoch, index) <= (removal.epoch, removal.index)
    return is_settled and broker not in removal.configuration.members
