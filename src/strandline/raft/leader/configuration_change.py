"""A leader changes the voters and observers by joint consensus.

Why:    two majorities that share no voter elect two leaders; a joint configuration makes them
        share one.
How:    present --ChangeConfiguration--> joint, in force at once --committed--> final
        final --committed--> a leader that is no longer a voter steps down (`Leading`)

        If no voter comes or goes, one entry does. One change runs at a time, and only once the
        leader has committed an entry of its own epoch. A new voter counts at once: callers let it
        catch up as an observer first.
            A smaller write quorum is the exception: it may come while another change runs.
        Elections, on which all of this rests, go by majorities, and a write quorum is always one.
        Without it, a leader that has lost voters could commit nothing, not even a change.
            If the controller grants changes, the configuration carries the grant's version. The
        leader refuses a past version, and adds or removes voters only under a new one. The promised
        write quorum also goes only with a new version, for the controller relies on it; a new
        version that lowers it may come while another change runs.
Owns:   nothing.
Source: Raft thesis 4.2.1-4.2.3 and 4.3."""

import msgspec

from strandline.raft.events import ChangeConfiguration
from strandline.raft.group.configuration import Configuration, promised_quorum_of
from strandline.raft.group.membership import Membership
from strandline.raft.leader.leading import Leading
from strandline.raft.state import RaftState


class ConfigurationChanges:
    """See the module."""

    def __init__(self, state: RaftState, membership: Membership, leading: Leading) -> None:
        self._state = state
        self._membership = membership
        self._leading = leading

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
            final = msgspec.structs.replace(final, old_voters=old_voters)
            self._leading.append_marker(leader_state, final)
            return
        assert not state.configuration.is_joint, "one change of voters at a time"
        is_same = set(old) == set(final.voters)
        if not is_same:
            final = msgspec.structs.replace(final, old_voters=old)
        self._leading.append_marker(leader_state, final)

    def refusal(self, event: ChangeConfiguration) -> str | None:
        """Why `event` would be refused now; None where it would not."""
        state = self._state
        members = event.voters + event.observers
        present = state.configuration
        if not event.voters:
            return "no voter is left"
        if len(set(members)) != len(members):
            return "a broker is named twice"
        if state.leader_state is None:
            return "this replica does not lead"
        if event.min_insync < promised_quorum_of(self._wanted(event).floor):
            return "its version promises a larger write quorum"
        if self._only_lowers(event) and state.leader_state.transferring_to is None:
            return None
        if not state.is_established:
            return "the leader has not yet committed an entry of its own epoch"
        if state.configuration.is_joint or not self._membership.is_committed:
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

    def _only_lowers(self, event: ChangeConfiguration) -> bool:
        """Whether a smaller write quorum, or a lower floor of it, is all that is asked for; see the
        module."""
        present, wanted = self._state.configuration, self._wanted(event)
        is_lower = wanted.min_insync < present.min_insync
        if wanted.version != present.version:
            is_lower = wanted.min_insync <= present.min_insync and wanted.version > present.version
            is_lower &= promised_quorum_of(wanted.floor) < promised_quorum_of(present.floor)
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
