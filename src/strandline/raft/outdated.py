"""A log that goes on where it was left, though its replica was no member meanwhile, is begun anew.

Why:    of a compacted log, what others have let go of while this replica was none of them stays in
        it: a key that was deleted, and its tombstone went. It cannot tell by its entries.
How:    the leader's commit is noted, durably, before the first entry of a log (`joined`). Who is
        sent entries is a member by the leader's last configuration, and the one before that is
        committed. So a committed configuration without this replica, behind `joined`, came while
        the log was here; with it again, the log is of two memberships. A leader that has yet to
        learn what is committed may say too little: then a log is begun anew once for nothing.
            It is found before the entry that makes this replica a member again is acknowledged, so
        before it can become a voter; from then on it counts for nothing, as after the loss of a
        disk (`rejoin`).
            Of other logs whole prefixes go, and no more: who comes back goes on with what it has.
            The log of a data directory that another one took the place of is known to be outdated
        when it is opened. It is begun anew once a leader was heard: until then it may be all that
        is left.
Owns:   `ReplicaState.joined` and `is_outdated`.
Source: decisions 0037 and 0038."""

from strandline.model.ids import Index
from strandline.raft.events import FoundOutdated
from strandline.raft.state import ReplicaState

OUTDATED = Index(-2)
"""In the place of `joined`: the log is of an earlier data directory."""


def note_joining(state: ReplicaState, commit: Index) -> None:
    """The first entries of a log are about to be appended; their leader has committed so far."""
    if state.joined is not None and OUTDATED < state.joined < commit:
        state.joined = commit
        state.persist()


def on_reset(state: ReplicaState) -> None:
    """The log has nothing any more, and begins behind what the leader let go of, all committed."""
    if state.joined is not None:
        state.joined = max(state.joined, Index(state.log.first_index - 1))


def look(state: ReplicaState) -> None:
    """A leader was heard, and configurations may have come, or were committed."""
    if state.joined is None or state.is_outdated or state.reign is not None:
        return
    left = state.commit if state.joined == OUTDATED else _left_last(state, state.joined)
    if left is None:
        return
    if state.is_compacted:
        state.is_outdated = state.amnesiac = True
        state.effects.append(FoundOutdated())
    else:
        # Nobody has let go of anything but whole prefixes: what was left here is as good as new.
        state.joined = left
        state.persist()


def _left_last(state: ReplicaState, joined: Index) -> Index | None:
    """Where the last committed configuration stands that is without this replica, behind `joined`,
    where it has come back since."""
    is_back = False
    for index, configuration in reversed(state.log.configurations):
        if index <= joined:
            return None
        if state.self_id in configuration.members:
            is_back = True
        elif is_back and index <= state.commit:
            return index
    return None
