"""Members change by joint consensus, and the configuration in force is the last one in the log.

Why:    two majorities that do not meet elect two leaders; a joint configuration makes them meet.
How:    a leader appends the joint configuration, in force at once; when it commits, the final one;
        when that commits, a leader that is no longer a voter steps down and lets the best voter
        stand. Where no voter comes or goes, one entry does. One change at a time, and only after
        the leader has committed an entry of its own epoch. A truncation brings the previous one
        back. Only a voter campaigns, or one that was a voter until an entry that may yet be lost.

        A new voter counts at once: callers let it catch up as an observer before.

        Who is removed is sent nothing any more, not even the entry that says so, and would ask for
        votes for ever; so would one that was added by an entry that was lost. So a refused vote
        names a committed entry and the configuration in force there, where the asker is not in it
        and its own configuration's (epoch, index) is not above that entry's. Such an asker's
        configuration was followed by one that it lacks, or it is not committed and never will be,
        or it excludes the asker, too. In the first two cases the asker lacks a committed entry, and
        can never win; in the third it is not needed. So it stands no more until its own
        configuration is above what it was told. It votes and follows as before: it may have been
        added again by an entry that it has yet to get, which is above. Nothing of this is durable,
        for the next answer says the same; one that comes late is still true. Who was told passes it
        on, as the voters that another one knows may all have been removed.
        A smaller write quorum is in force whatever else is under way: elections, on which all of
        this rests, go by majorities, which it still is. It is what a leader needs that can commit
        nothing, a change included, without voters that are lost.
        Where changes are granted from outside, the configuration carries the grant's version: then
        none is carried out that is past, and no voter comes or goes without a new one. Nor does
        the floor of the write quorum, on which whoever granted it relies: who has to go below it
        needs a new version, and then does so whatever else is under way.
Owns:   which configuration is in force, and its index; what it was told of its removal.
Source: Raft thesis 4.2.1-4.2.3 and 4.3; Ongaro's note on single-server changes (2015)."""

import msgspec

from strandline.model.ids import NO_BROKER, BrokerId, Epoch, Index
from strandline.raft.events import ChangeConfiguration, ConfigurationChanged, PrefixDropped
from strandline.raft.group.configuration import Configuration, floor_of
from strandline.raft.messages import Removal, TimeoutNow
from strandline.raft.state import ReplicaState


class Membership:
    """See the module."""

    def __init__(self, state: ReplicaState) -> None:
        self._state = state
        self._index = self._last()[0]
        # The latest that this replica was told with a refusal.
        self._told: Removal | None = None

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
        if self._told is not None and _removes(self._told, state.self_id, *self.position):
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
        if self._told is not None and self._told.index > removal.index:
            removal = self._told
        return removal if _removes(removal, broker, *position) else None

    def on_told(self, removal: Removal) -> None:
        """A voter refused this replica, for the reason that it was removed."""
        if self._told is None or removal.index > self._told.index:
            self._told = removal

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
        leader_state = state.leader_state
        if leader_state is None or not leader_state.is_established or not self.is_committed:
            return
        present = state.configuration
        if present.is_joint:
            leader_state.append_marker(msgspec.structs.replace(present, old_voters=()))
        elif state.self_id not in present.voters:
            transfer_target = leader_state.most_advanced(present.voters)
            if transfer_target != NO_BROKER:
                state.send(transfer_target, TimeoutNow(state.epoch))
            state.follow(state.epoch, NO_BROKER)

    def on_change(self, event: ChangeConfiguration) -> None:
        """Begin a change; nothing happens where it is refused."""
        if self.refusal(event) is not None:
            return
        state = self._state
        leader_state = state.leader_state
        assert leader_state is not None
        final = self._wanted(event)
        old = state.configuration.voters
        if self._only_lowers(event):
            old_voters = state.configuration.old_voters
            leader_state.append_marker(msgspec.structs.replace(final, old_voters=old_voters))
            return
        is_same = set(old) == set(final.voters)
        leader_state.append_marker(
            final if is_same else msgspec.structs.replace(final, old_voters=old)
        )

    def refusal(self, event: ChangeConfiguration) -> str | None:
        """Why `event` would be refused now; None where it would not."""
        state = self._state
        members: tuple[BrokerId, ...] = event.voters + event.observers
        present = state.configuration
        if not event.voters:
            return "no voter is left"
        if len(set(members)) != len(members):
            return "a broker is named twice"
        if state.leader_state is None:
            return "this replica does not lead"
        if event.min_insync < floor_of(self._wanted(event).floor):
            return "its version promises a larger write quorum"
        if self._only_lowers(event) and state.leader_state.transferring_to is None:
            return None
        if not state.leader_state.is_established:
            return "the leader has not yet committed an entry of its own epoch"
        if state.configuration.is_joint or not self.is_committed:
            return "another change is under way"
        if state.leader_state.transferring_to is not None:
            return "leadership is being transferred"
        if event.version is not None and event.version < present.version:
            return "it rests on a configuration that is past"
        if event.version == present.version and set(event.voters) != set(present.voters):
            return "voters come and go with a new version only"
        if self._wanted(event) == present:
            return "nothing changes"
        return None

    def _voters_before(self) -> tuple[BrokerId, ...]:
        """Who voted before the last change of voters that is not known to be committed.

        More than one entry may have come since: a write quorum may be made smaller behind it."""
        state = self._state
        present = set(state.configuration.all_voters)
        for index, configuration in reversed(state.log.configurations):
            if index <= state.commit or set(configuration.all_voters) != present:
                return configuration.all_voters
        return state.start_configuration.all_voters

    def _only_lowers(self, event: ChangeConfiguration) -> bool:
        """Whether a smaller write quorum, or a lower floor of it, is all that is asked for; see the
        module."""
        present, wanted = self._state.configuration, self._wanted(event)
        is_lower = wanted.min_insync < present.min_insync
        if wanted.version != present.version:
            is_lower = wanted.min_insync <= present.min_insync and wanted.version > present.version
            is_lower &= floor_of(wanted.floor) < floor_of(present.floor)
        return (
            is_lower
            and set(event.voters) == set(present.voters)
            and set(event.observers) == set(present.observers)
        )

    def _wanted(self, event: ChangeConfiguration) -> Configuration:
        """Where `event` leads to in the end."""
        present = self._state.configuration
        version = present.version if event.version is None else event.version
        floor = event.floor
        if version == present.version:
            floor = present.floor
        elif set(event.voters) != set(present.voters):
            floor = msgspec.UNSET
        return Configuration(event.voters, (), event.observers, event.min_insync, version, floor)

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
    """Whether it settles that `broker`, with a configuration of this place, is no member."""
    is_settled = removal.index >= 0 and (epoch, index) <= (removal.epoch, removal.index)
    return is_settled and broker not in removal.configuration.members
