"""A log that goes on where it was left, though its replica was no member meanwhile, is begun anew.

Why:    of a compacted log, what others have let go of while this replica was none of them stays in
        it: a key that was deleted, and its tombstone went. It cannot tell by its entries.
How:    with the first entry of a log comes where the leader's configuration in force stands; that
        is noted, durably, before the entry (`joined`). A configuration behind that, without this
        replica, and a later one with it again: the log is of two memberships. It says so whatever
        is known of the commit: the later one was appended once the other one was committed.
            But for a seat, whose configuration supersedes what may be committed nowhere: it is
        committed with the help of those whom it names, who may have been members all the time.
            It is found before the entry that makes this replica a member again is acknowledged, so
        before it can vote; from then on it counts for nothing, as after the loss of a disk
        (`rejoin`).
            Of other logs whole prefixes go, and no more: who comes back goes on with what it has.
            The log of a data directory that another one took the place of is known to be outdated
        when it is opened. It is begun anew once a leader was heard: until then it may be all that
        is left.
Owns:   `ReplicaState.joined` and `is_outdated`.
Source: decisions 0037 and 0038."""

from strandline.model.ids import Index, first_epoch, grant_of
from strandline.raft.events import FoundOutdated
from strandline.raft.messages import AppendRequest
from strandline.raft.state import ReplicaState, Role

OUTDATED = Index(-2)
"""In the place of `joined`: the log is of an earlier data directory."""


def note_joining(state: ReplicaState, message: AppendRequest) -> None:
    """The first entries of a log are about to be appended."""
    joined = max(message.commit, message.configured)
    if state.joined is not None and state.joined < joined:
        state.joined = joined
        state.persist()


def look(state: ReplicaState) -> None:
    """A leader has sent something, and configurations may have come with it."""
    if state.joined is None or state.reign is not None or state.is_told_outdated:
        return
    judge(state)
    if state.is_outdated:
        state.is_told_outdated = True
        state.effects.append(FoundOutdated())


def judge(state: ReplicaState) -> None:
    """Where the log was left and is gone on with, count for nothing; or go on with it for good."""
    if state.joined is None or state.is_outdated or state.role != Role.FOLLOWER:
        return
    left = _left_last(state, state.joined)
    if left is None:
        return
    if state.is_compacted:
        state.is_outdated = state.amnesiac = True
    else:
        # Nobody has let go of anything but whole prefixes: what was left here is as good as new.
        state.joined = left
        state.persist()


def _left_last(state: ReplicaState, joined: Index) -> Index | None:
    """Where the last configuration stands that is without this replica, behind `joined`, where it
    has come back since; None where there is none."""
    log = state.log
    if joined == OUTDATED:
        return Index(-1) if log.last_index >= log.first_index else None
    is_back = False
    for index, configuration in reversed(log.configurations):
        if index <= joined:
            return None
        if state.self_id in configuration.members:
            if _is_seat(state, index):
                return None
            is_back = True
        elif is_back:
            return index
    return None


def _is_seat(state: ReplicaState, index: Index) -> bool:
    """Whether the entry there is the first one of who was seated by a grant."""
    epoch = state.log.epoch_at(index)
    grant = grant_of(epoch)
    return grant > 0 and epoch == first_epoch(grant) != state.log.epoch_at(Index(index - 1))
