"""Makes the Raft core of a replica from its log and its durable state.

Why:    a core starts from the log's shape alone; where an effect could not be performed, a fresh
        one goes on from what the log and the journal hold.
Owns:   nothing; one per broker.
Source: design section 5."""

from collections.abc import Sequence

import msgspec

from strandline.model.ids import CONTROLLER_GROUP, NO_BROKER, BrokerId, Epoch, GroupId, Index
from strandline.raft.core import Raft
from strandline.raft.events import CompactionEnabled
from strandline.raft.follower.stale_log_reset import OUTDATED
from strandline.raft.group.configuration import Configuration
from strandline.raft.group.log_shape import LogShape
from strandline.raft.messages import NO_MARKS, Marks
from strandline.replication.replica.durable_state import DurableState
from strandline.replication.replica.entries import decode_configuration
from strandline.replication.replica.state import ReplicaState
from strandline.storage.log.log import Log
from strandline.storage.state_journal import UNKNOWN, GroupState


class RaftFactory:
    """See the module. `on_rejoin_asked`: where it is empty, replicas that lost their disk do not
    ask when they may take part again."""

    def __init__(
        self, self_id: BrokerId, durable: DurableState, on_rejoin_asked: Sequence[object]
    ) -> None:
        self._self_id = self_id
        self._durable = durable
        self._on_rejoin_asked = on_rejoin_asked

    def new(
        self,
        group: GroupId,
        log: Log,
        state: GroupState,
        base: Configuration,
        marks: Marks = NO_MARKS,
        *,
        may_rejoin: bool = False,
        is_old: bool = False,
    ) -> Raft:
        """A core for this log and this state. `may_rejoin`: that is noted already. `is_old`: the
        log is of an earlier data directory, and of no use."""
        shape = LogShape(
            first_index=log.start_index,
            last_index=log.last_index,
            flushed_index=log.flushed_index,
            previous_epoch=log.previous_epoch,
            start_offset=log.start_offset,
            epochs=list(log.epochs),
            configurations=[
                (index, decode_configuration(payload)) for index, payload in log.configurations
            ],
        )
        shape.compacted_index = log.compacted_index
        raft = Raft(
            group=group,
            self_id=self._self_id,
            log=shape,
            epoch=state.epoch,
            vote=state.vote,
            configuration=base,
            commit=marks.commit,
            visible=marks.visible,
            lost_state=state.lost_state,
            delegated_epoch=state.promised,
            asks_to_rejoin=bool(self._on_rejoin_asked)
            and group != CONTROLLER_GROUP
            and not may_rejoin,
            joined=_joined(group, log, state, is_old=is_old),
        )
        if log.config.has_been_compacted:
            raft.step(CompactionEnabled())
        return raft

    def rebuild(self, replica: ReplicaState) -> Raft:
        """A new core for a replica that could not perform its core's effects: as after a restart,
        except that the marks stay."""
        state = self._durable.journal.get(replica.group)
        if state is None:
            state = GroupState(Epoch(0), NO_BROKER, replica.base)
        if replica.raft.has_lost_state:
            state = msgspec.structs.replace(state, lost_state=True)
        last = replica.log.last_index
        commit, visible = replica.marks.commit, replica.marks.visible
        marks = Marks(Index(min(commit, last)), Index(min(visible, last)))
        return self.new(
            replica.group,
            replica.log,
            state,
            replica.base,
            marks,
            may_rejoin=replica.rejoined > 0,
            is_old=replica.raft.joined == OUTDATED,
        )


def _joined(group: GroupId, log: Log, state: GroupState, *, is_old: bool) -> Index | None:
    """See `raft.follower.stale_log_reset`. Every broker always follows the controller's group."""
    if group == CONTROLLER_GROUP:
        return None
    if is_old:
        return OUTDATED
    return log.last_index if state.joined == UNKNOWN else state.joined
