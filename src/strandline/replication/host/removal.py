"""Removes a replica from this broker for good, so that the broker may get the group again.

Why:    a log is removed file by file, and names may return after a power failure. A broker that
        trusts such a partial log votes for candidates without entries that it has acknowledged.
How:    closed --> state marked as lost, durably --> log removed, durably --> state removed
        Or, instead of the last step, the state is replaced:
        - of a replica declared lost: by one with that grant, so that it is removed once and takes
          part in no earlier epoch;
        - of a stale log (`raft.follower.stale_log_reset`): by one that keeps the votes.
            After a crash the group opens as lost: the mark is there, or no state is.
Owns:   the groups under removal; they must not be opened meanwhile.
Source: docs/decisions/0009-moving-replicas.md; `raft.follower.rejoin`."""

import logging
from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from strandline.base.clock import Clock
from strandline.base.disk import Disk, is_full
from strandline.model.ids import NO_BROKER, GroupId, first_epoch
from strandline.replication.replica.state import ReplicaState
from strandline.storage.state_journal import GroupState, StateJournal

RETRY_MS = 10_000

_log = logging.getLogger("strandline.replication")


class ReplicaRemoval:
    """See the module. `on_removal` is called before a log is removed; `close_group` closes the
    replica of a group."""

    def __init__(
        self,
        journal: StateJournal,
        *,
        clock: Clock,
        disk: Disk,
        on_removal: Iterable[Callable[[GroupId], None]],
        close_group: Callable[[GroupId], None],
    ) -> None:
        self._journal = journal
        self._clock = clock
        self._disk = disk
        self._on_removal = on_removal
        self._close_group = close_group
        # {group under removal: called when it is removed}
        self._leaving: dict[GroupId, Callable[[], None]] = {}
        # {group under removal: the state that replaces its own; None: it has no successor}
        self._successors: dict[GroupId, GroupState | None] = {}

    def __contains__(self, group: GroupId) -> bool:
        return group in self._leaving

    def knows(self, group: GroupId) -> bool:
        """Whether a state of the group is here; none is on a lost disk."""
        return self._journal.get(group) is not None

    def is_due(self, group: GroupId, lost_in: int) -> bool:
        """Whether a replica declared lost by that grant has yet to be removed."""
        state = self._journal.get(group)
        return lost_in > 0 and (state is None or state.forgotten < lost_in)

    def remove(
        self, group: GroupId, directory: str, done: Callable[[], None], *, lost_in: int = 0
    ) -> None:
        """Close a replica, if it is open, and remove its log in `directory` and its state.
        `lost_in`: the grant that declared it lost, for a state that says so."""
        successor = None
        if lost_in:
            # It takes part in no epoch before the grant.
            epoch = first_epoch(lost_in)
            successor = GroupState(epoch, NO_BROKER, None, lost_state=True, forgotten=lost_in)
        self._begin_removal(group, directory, done, successor)

    def reset_log(self, replica: ReplicaState, done: Callable[[], None], *, rejoined: int) -> None:
        """Close a replica and remove its log; its votes and promises stay, marked as lost.
        `rejoined`: see `GroupSpec`."""
        state = self._journal.get(replica.group)
        assert state is not None, "nothing is appended before there is a state"
        successor = msgspec.structs.replace(
            state, configuration=None, lost_state=True, rejoined=rejoined
        )
        self._begin_removal(replica.group, replica.log.directory, done, successor)

    def _begin_removal(
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
        for callback in self._on_removal:
            callback(group)
        self._close_group(group)
        self._note(group, directory)

    def _note(self, group: GroupId, directory: str) -> None:
        state = self._journal.get(group)
        if state is None:
            self._remove_noted(group, directory)
            return
        # Also if it is marked already: that mark may not be durable yet.
        noted = partial(self._remove, group, directory)
        self._journal.put(group, msgspec.structs.replace(state, lost_state=True), noted)

    def _remove(self, group: GroupId, directory: str, error: OSError | None) -> None:
        """The mark that the state is lost is durable, or could not be written."""
        if error is None:
            self._remove_noted(group, directory)
        elif is_full(error):
            again = partial(self._note, group, directory)
            self._clock.call_later(RETRY_MS, again)
        else:
            # The journal has failed: the log stays with its state.
            _log.error("cannot remove %s: %s", directory, error)
            if self._successors[group] is None:
                self._end(group)

    def _remove_noted(self, group: GroupId, directory: str) -> None:
        try:
            self._disk.remove_tree(directory)
            # Otherwise the log might return without the state that marks it as lost.
            self._disk.flush_directory(directory.rpartition("/")[0])
        except OSError as error:
            # The next start removes it; anything that is opened is opened as lost.
            _log.error("cannot remove %s: %s", directory, error)
            if self._successors[group] is None:
                self._end(group)
            else:
                again = partial(self._remove_noted, group, directory)
                self._clock.call_later(RETRY_MS, again)
            return
        if self._successors[group] is None:
            self._journal.remove(group)
            self._end(group)
        else:
            self._succeed(group)

    def _succeed(self, group: GroupId) -> None:
        """Write the state that replaces the removed one."""
        successor = self._successors[group]
        assert successor is not None
        self._journal.put(group, successor, partial(self._on_succeeded, group))

    def _on_succeeded(self, group: GroupId, error: OSError | None) -> None:
        if error is None:
            self._end(group)
            return
        _log.error("group %d: cannot note its removal: %s", group, error)
        if is_full(error):
            self._clock.call_later(RETRY_MS, partial(self._succeed, group))

    def _end(self, group: GroupId) -> None:
        del self._successors[group]
        self._leaving.pop(group)()
