"""The durable state of a broker's groups: epoch, vote, and the configuration at the log's start.

Why:    a vote or an acknowledgement counts only once the journal holds the state it rests on.
How:    each change puts the whole state of one group into the broker's `StateJournal`; `done` is
        called once that is durable, or with the error.
Owns:   the journal, from `open` to `close`; one per broker.
Source: Raft, figure 2 (persistent state); design section 5."""

from collections.abc import Callable

import msgspec

from strandline.base.clock import Clock
from strandline.base.disk import Disk
from strandline.model.ids import NO_BROKER, BrokerId, Epoch, GroupId
from strandline.raft.events import PersistState, ResetLog
from strandline.raft.group.configuration import Configuration
from strandline.replication.replica.state import ReplicaState
from strandline.storage.state_journal import UNKNOWN, GroupState, StateJournal

Done = Callable[[OSError | None], None]


class DurableState:
    """See the module. `candidacy_count`: elections in which a replica here was a candidate."""

    def __init__(self, self_id: BrokerId) -> None:
        self._self_id = self_id
        self._journal: StateJournal | None = None
        self.candidacy_count = 0

    def open(self, disk: Disk, path: str, *, clock: Clock, use_reserve: Callable[[], bool]) -> None:
        """Open the journal in `path`. Raises OSError, StorageError."""
        self._journal = StateJournal.open(disk, path, clock=clock, use_reserve=use_reserve)

    def close(self) -> None:
        """Write nothing more."""
        if self._journal is not None:
            self._journal.close()

    @property
    def journal(self) -> StateJournal:
        """The journal, which is open."""
        assert self._journal is not None
        return self._journal

    # ---- of a replica ----------------------------------------------------------------------------

    def persist(self, replica: ReplicaState, effect: PersistState | ResetLog, done: Done) -> None:
        """Make a group's epoch and vote durable, or, for a log that is reset, the configuration in
        force: no entry would bring it again."""
        if isinstance(effect, ResetLog):
            replica.base = effect.configuration
            self.persist_base(replica, done)
            return
        assert effect.epoch >= self.epoch_of(replica.group), "a durable epoch never goes back"
        is_promise = effect.delegated_epoch > effect.epoch
        self.candidacy_count += effect.vote == self._self_id and not is_promise
        state = _state_of(replica, effect.epoch, effect.vote, effect.delegated_epoch)
        self.journal.put(replica.group, state, done)

    def persist_base(self, replica: ReplicaState, done: Done) -> None:
        """Make the configuration at the log's start durable, after a change of `replica.base`."""
        raft = replica.raft
        state = _state_of(replica, raft.epoch, raft.vote, raft.delegated_epoch)
        self.journal.put(replica.group, state, done)

    def persist_new(self, replica: ReplicaState, done: Done) -> None:
        """Note durably that the replica has lost nothing, before it takes part."""
        state = GroupState(replica.raft.epoch, replica.raft.vote, replica.base)
        self.journal.put(replica.group, state, done)

    # ---- of a group that may be closed -----------------------------------------------------------

    def mark_lost(self, group: GroupId, base: Configuration, done: Done) -> None:
        """Note durably that the log of a closed group has lost acknowledged entries: opened again,
        its replica takes no part until it has rejoined."""
        state = self.journal.get(group) or GroupState(Epoch(0), NO_BROKER, base)
        self.journal.put(group, msgspec.structs.replace(state, lost_state=True), done)

    def epoch_of(self, group: GroupId) -> Epoch:
        """The last epoch that is noted here; 0 for none, and before `open`."""
        state = None if self._journal is None else self._journal.get(group)
        return Epoch(0) if state is None else state.epoch

    def configuration_of(self, group: GroupId) -> Configuration | None:
        """The configuration at the start of the log, as far as it is noted here."""
        state = self.journal.get(group)
        return None if state is None else state.configuration


def _state_of(replica: ReplicaState, epoch: Epoch, vote: BrokerId, promised: Epoch) -> GroupState:
    """The durable state of a replica."""
    joined = replica.raft.joined
    return GroupState(
        epoch,
        vote,
        replica.base,
        replica.raft.has_lost_state,
        promised,
        rejoined=replica.rejoined,
        joined=UNKNOWN if joined is None else joined,
    )
