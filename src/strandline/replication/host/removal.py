"""Lets go of a replica for good, so that its broker may be given the group again.

Why:    a log is removed file by file, and names come back after a power failure: what is found
        later may be a part of it. A broker that trusts such a part, or that opens an empty log
        beside a state from before, votes for who lacks what it had acknowledged.
How:    closed --> noted durably that what was acknowledged is lost --> log removed, durably, too
               --> state removed
        Where it was declared lost, a state takes the place of the one before that says by which
        grant: it is forgotten once, and lives in no epoch before it. Where only the log is of no
        use (`raft.outdated`), one that remembers what was voted takes that place.
            Whatever a crash leaves is opened as lost: the note is there, or there is nothing, and
        the controller knows since when this broker has the group.
Owns:   which groups are on their way out; they must not be opened meanwhile.
Source: docs/decisions/0009-moving-replicas.md; `raft.rejoin`."""

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from strandline.base.disk import is_full
from strandline.model.ids import NO_BROKER, GroupId, first_epoch
from strandline.storage.state_journal import GroupState, StateJournal

if TYPE_CHECKING:
    from strandline.replication.host.replication import Replication
    from strandline.replication.replica.replica import Replica

RETRY_MS = 10_000

_log = logging.getLogger("strandline.replication")


class ReplicaRemoval:
    """See the module."""

    def __init__(self, host: "Replication", journal: StateJournal) -> None:
        self._host = host
        self._journal = journal
        # {group: who is told when it is gone}
        self._leaving: dict[GroupId, Callable[[], None]] = {}
        # {group on its way out: the state that takes the place of its own; None for none}
        self._successors: dict[GroupId, GroupState | None] = {}

    def __contains__(self, group: GroupId) -> bool:
        return group in self._leaving

    def knows(self, group: GroupId) -> bool:
        """Whether there is a state of the group here: none is on a disk that was lost."""
        return self._journal.get(group) is not None

    def owes(self, group: GroupId, lost_in: int) -> bool:
        """Whether a replica that was declared lost by that grant has not been forgotten since."""
        state = self._journal.get(group)
        return lost_in > 0 and (state is None or state.forgotten < lost_in)

    def forget(
        self, group: GroupId, directory: str, done: Callable[[], None], *, lost_in: int = 0
    ) -> None:
        """Close a replica, if it is open, and remove its log in `directory` and its state.

        `lost_in`: the grant by which it was declared lost: a state that says so takes its place."""
        successor = None
        if lost_in:
            # It lives in no epoch before the grant, and knows nothing of those.
            epoch = first_epoch(lost_in)
            successor = GroupState(epoch, NO_BROKER, None, lost_state=True, forgotten=lost_in)
        self._let_go(group, directory, done, successor)

    def begin_anew(self, replica: "Replica", done: Callable[[], None], *, rejoined: int) -> None:
        """Close a replica and remove its log; what it has promised stays, as of one that lost what
        it had acknowledged. `rejoined`: see `GroupSpec`."""
        state = self._journal.get(replica.group)
        assert state is not None, "nothing is appended before there is a state"
        successor = msgspec.structs.replace(
            state, configuration=None, lost_state=True, rejoined=rejoined
        )
        self._let_go(replica.group, replica.log.directory, done, successor)

    def _let_go(
        self,
        group: GroupId,
        directory: str,
        done: Callable[[], None],
        successor: GroupState | None,
    ) -> None:
        if group in self._leaving:
            return
        self._leaving[group] = done
        self._successors[group] = successor
        for callback in self._host.on_forgotten:
            callback(group)
        self._host.close_group(group)
        self._note(group, directory)

    def _note(self, group: GroupId, directory: str) -> None:
        state = self._journal.get(group)
        if state is None:
            self._remove_noted(group, directory)
            return
        # Also where it says so already: that may not be durable yet.
        noted = partial(self._remove, group, directory)
        self._journal.put(group, msgspec.structs.replace(state, lost_state=True), noted)

    def _remove(self, group: GroupId, directory: str, error: OSError | None) -> None:
        """What it acknowledged is noted as lost, or could not be."""
        if error is None:
            self._remove_noted(group, directory)
        elif is_full(error):
            again = partial(self._note, group, directory)
            self._host.clock.call_later(RETRY_MS, again)
        else:
            # Nothing can be noted any more: the log stays with the state that speaks of it.
            _log.error("%s cannot be removed: %s", directory, error)
            if self._successors[group] is None:
                self._end(group)

    def _remove_noted(self, group: GroupId, directory: str) -> None:
        try:
            self._host.disk.remove_tree(directory)
            # Else the log might come back without the state that says what it is worth.
            self._host.disk.flush_directory(directory.rpartition("/")[0])
        except OSError as error:
            # It is removed when the broker starts anew; whatever is there is opened as lost.
            _log.error("%s cannot be removed: %s", directory, error)
            if self._successors[group] is None:
                self._end(group)
            else:
                again = partial(self._remove_noted, group, directory)
                self._host.clock.call_later(RETRY_MS, again)
            return
        if self._successors[group] is None:
            self._journal.remove(group)
            self._end(group)
        else:
            self._succeed(group)

    def _succeed(self, group: GroupId) -> None:
        """Leave a state in the place of the one before."""
        successor = self._successors[group]
        assert successor is not None
        self._journal.put(group, successor, partial(self._on_succeeded, group))

    def _on_succeeded(self, group: GroupId, error: OSError | None) -> None:
        if error is None:
            self._end(group)
            return
        _log.error("group %d: that it was given up cannot be noted: %s", group, error)
        if is_full(error):
            self._host.clock.call_later(RETRY_MS, partial(self._succeed, group))

    def _end(self, group: GroupId) -> None:
        del self._successors[group]
        self._leaving.pop(group)()
