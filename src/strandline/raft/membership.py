"""Members change by joint consensus, and the configuration in force is the last one in the log.

Why:    two majorities that do not meet elect two leaders; a joint configuration makes them meet.
How:    a leader appends the joint configuration, in force at once; when it commits, the final one;
        when that commits, a leader that is no longer a voter steps down and lets the best voter
        stand. Where no voter comes or goes, one entry does. One change at a time, and only after
        the leader has committed an entry of its own epoch. A truncation brings the previous one
        back. Only a voter campaigns, or one that was a voter until an entry that may yet be lost.

        A new voter counts at once: callers let it catch up as an observer before.
Owns:   which configuration is in force, and its index.
Source: Raft thesis 4.2.1-4.2.3 and 4.3; Ongaro's note on single-server changes (2015)."""

from strandline.model.ids import NO_BROKER, BrokerId, Index
from strandline.raft.configuration import Configuration
from strandline.raft.events import ChangeConfiguration, ConfigurationChanged, PrefixDropped
from strandline.raft.messages import TimeoutNow
from strandline.raft.state import ReplicaState


class Membership:
    """See the module."""

    def __init__(self, state: ReplicaState) -> None:
        self._state = state
        self._index = self._last()[0]

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
        if state.self_id in state.configuration.all_voters:
            return True
        if self.is_committed:
            return False
        entries = state.log.configurations
        previous = entries[-2][1] if len(entries) > 1 else state.start_configuration
        return state.self_id in previous.all_voters

    def refresh(self) -> None:
        """The log gained or lost entries, or was reset: see what is in force now."""
        state = self._state
        index, configuration = self._last()
        if index == self._index and configuration == state.configuration:
            return
        self._index = index
        state.configuration = configuration
        state.effects.append(ConfigurationChanged(index, configuration, self.is_committed))

    def on_prefix_dropped(self, event: PrefixDropped) -> None:
        """Retention: what was in force in the removed part becomes the start's configuration."""
        state = self._state
        assert event.first_index - 1 <= state.commit, "only committed entries are dropped"
        for index, configuration in state.log.configurations:
            if index < event.first_index:
                state.start_configuration = configuration
        state.log.drop_prefix(event.first_index, event.start_offset)
        self._index = self._last()[0]

    def on_commit(self, before: Index) -> None:
        """The commit went up from `before`: say which configurations are committed."""
        state = self._state
        for index, configuration in state.log.configurations:
            if before < index <= state.commit:
                state.effects.append(ConfigurationChanged(index, configuration, committed=True))

    def settle(self) -> None:
        """A leader committed in its own epoch: go on with an unfinished change, or step down."""
        state = self._state
        reign = state.reign
        if reign is None or not reign.is_established or not self.is_committed:
            return
        present = state.configuration
        if present.is_joint:
            final = Configuration(present.voters, (), present.observers, present.min_insync)
            reign.append_marker(final)
        elif state.self_id not in present.voters:
            heir = reign.most_advanced(present.voters)
            if heir != NO_BROKER:
                state.send(heir, TimeoutNow(state.epoch))
            state.follow(state.epoch, NO_BROKER)

    def on_change(self, event: ChangeConfiguration) -> None:
        """Begin a change; nothing happens where it is refused."""
        if self.refusal(event) is not None:
            return
        state = self._state
        reign = state.reign
        assert reign is not None
        old = state.configuration.voters
        is_same = set(old) == set(event.voters)
        reign.append_marker(
            Configuration(event.voters, () if is_same else old, event.observers, event.min_insync)
        )

    def refusal(self, event: ChangeConfiguration) -> str | None:
        """Why `event` would be refused now; None where it would not."""
        state = self._state
        members: tuple[BrokerId, ...] = event.voters + event.observers
        target = Configuration(event.voters, (), event.observers, event.min_insync)
        if not event.voters:
            return "no voter is left"
        if len(set(members)) != len(members):
            return "a broker is named twice"
        if state.reign is None:
            return "this replica does not lead"
        if not state.reign.is_established:
            return "the leader has not yet committed an entry of its own epoch"
        if state.configuration.is_joint or not self.is_committed:
            return "another change is under way"
        if state.reign.transferring_to is not None:
            return "leadership is being transferred"
        if target == state.configuration:
            return "nothing changes"
        return None

    def _last(self) -> tuple[Index, Configuration]:
        state = self._state
        if state.log.configurations:
            return state.log.configurations[-1]
        return Index(state.log.first_index - 1), state.start_configuration
