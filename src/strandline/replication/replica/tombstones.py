"""Up to where the tombstones of a compacted log may go, as its leader knows.

Why:    a tombstone that goes while a member has what it deletes brings the key back.
How:    each member reports up to where it has compacted its log, and what it has flushed. The
        minimum over all members is what every one of them has outlived.
Owns:   nothing.
Source: decision 0037."""

from strandline.model.ids import Index, Offset
from strandline.replication.replica.state import ReplicaState
from strandline.replication.wire import NOTHING_OUTLIVED


def outlived_index(leader: ReplicaState, held_index: Index) -> Index:
    """Tombstones up to here may go, as far as the members of a compacted log have told its leader:
    every one has them, and nothing that they delete. -1 where one has not said so, the
    configuration is not committed, or the controller has not noted who votes by it.

    `held_index`: every member has flushed the log up to here."""
    raft = leader.raft
    if raft.configuration_index > raft.commit:
        return Index(-1)  # It may be lost: a broker that is no member by it would be one again.
    if leader.configuration.version != leader.settled_version:
        return Index(-1)  # A member that has left may be appointed, and counted on.
    progress = raft.progress
    others = [member for member in leader.configuration.members if member != leader.self_id]
    told = [progress[one].compacted_index if one in progress else Index(-1) for one in others]
    return min(held_index, leader.log.compacted_index, *told)


def outlived_offset(replica: ReplicaState, held_index: Index | None) -> Offset:
    """Tombstones below may go, as far as the logs of the members are concerned. `held_index`: as
    for `outlived_index`; None for a follower, which its leader has told."""
    log = replica.log
    outlived = replica.leader_outlived
    if held_index is not None:
        outlived = outlived_index(replica, held_index)
    if outlived >= log.last_index:
        return log.end_offset
    if outlived + 1 < log.start_index:
        return Offset(0)
    return log.offset_of(Index(outlived + 1))


def reported_outlived(leader: ReplicaState, held_index: Index) -> Index:
    """For `AppendHead.outlived`, of a log that has been compacted."""
    index = outlived_index(leader, held_index)
    return index if index >= 0 else NOTHING_OUTLIVED
