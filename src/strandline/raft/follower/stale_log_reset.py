"""A log that goes on where it was left, though its replica was no member meanwhile, is begun anew.

Why:    of a compacted log, what others have let go of while this replica was none of them stays in
        it: a key that was deleted, and its tombstone went. It cannot tell by its entries.
How:    with the first entry of a log comes where the leader's last configuration stands that is
        committed for certain; that is noted, durably, before the entry (`joined`). A configuration
        behind that, without this replica, and a later one with it again: the log is of two
        memberships. It says so whatever is known of the commit: the later one was appended once
        the other one was committed.
            Who is added is sent nothing before that is committed for certain: what it had got by an
        entry that is lost would be of no membership.
            But for a seat, whose configuration supersedes what may be committed nowhere: it is
        committed with the help of the voters that it names, who may have been so all the time.
        While they may be seated, no tombstone goes without them (`compactor.outlived_index`).
            It is found before the entry that makes this replica a member again is acknowledged, so
        before it can vote; from then on it counts for nothing, as after the loss of a disk
        (`rejoin`).
            Of other logs whole prefixes go, and no more: who comes back goes on with what it has.
            The log of a data directory that another one took the place of is known to be outdated
        when it is opened. It is begun anew once a leader was heard: until then it may be all that
        is left.
Owns:   `ReplicaState.joined` and `is_outdated`.
Source: decisions 0037 and 0038."""

from strandline.model.ids import BrokerId, Index, first_epoch, grant_of
from strandline.raft.events import FoundOutdated
from strandline.raft.group.configuration import Configuration
from strandline.raft.messages import AppendRequest
from strandline.raft.state import ReplicaState
from strandline.raft.transitions import Role

OUTDATED = Index(-2)
"""In the place of `joined`: the log is of an earlier data directory."""


def note_joining(state: ReplicaState, message: AppendRequest) -> None:
    """The first entries of a log are about to be appended."""
    joined = max(message.commit, message.configured)
    if state.joined is not None and state.joined < joined:
        state.joined = joined
        state.persist()


def look(state: ReplicaState) -> None:
    """A leader has sent something, and nothing of it is acknowledged yet: configurations may have
    come with it, or the driver told what the log is."""
    state.has_to_look = False
    if state.joined is None or state.leader_state is not None or state.is_told_outdated:
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
    assert state.leader_state is None, "a leader's log is not outdated"
    if state.is_compacted:
        state.is_outdated = state.lost_state = True
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
    later: Configuration | None = None
    for index, configuration in reversed(log.configurations):
        if index <= joined:
            return None
        if state.self_id not in configuration.members:
            if is_back:
                return index
            continue
        is_back = True
        if _is_seat(state, index):
            if state.self_id in configuration.voters:
                return None
            # It is committed without its observers; until that is known, it may be lost.
            is_replaced = later is not None and _roles(later) != _roles(configuration)
            is_back = index <= state.commit or is_replaced
        later = configuration
    return None


def last_certain(state: ReplicaState) -> Index:
    """Where the last configuration stands that is committed for certain: as this leader knows, or
    because roles were changed behind it, not by a seat. -1 where there is none."""
    return _last_certain(state)[0]


def is_certain_member(state: ReplicaState, peer: BrokerId) -> bool:
    """Whether `peer` is a member whatever may be lost, or votes already: then it may be needed to
    commit anything at all."""
    configurations = state.log.configurations
    if not configurations or configurations[-1][0] <= state.commit:
        return True
    return peer in state.configuration.all_voters or peer in _last_certain(state)[1].members


def _last_certain(state: ReplicaState) -> tuple[Index, Configuration]:
    later: tuple[Index, Configuration] | None = None
    for index, configuration in reversed(state.log.configurations):
        if index <= state.commit:
            return index, configuration
        is_changed = later is not None and _roles(later[1]) != _roles(configuration)
        if is_changed and later is not None and not _is_seat(state, later[0]):
            return index, configuration
        later = index, configuration
    return Index(-1), state.start_configuration


def _roles(one: Configuration) -> tuple[frozenset[BrokerId], ...]:
    """What changes only once the configuration before is committed, but for seats: a smaller write
    quorum is in force whatever else is under way."""
    return frozenset(one.voters), frozenset(one.old_voters), frozenset(one.observers)


def _is_seat(state: ReplicaState, index: Index) -> bool:
    """Whether the entry there is the first one of who was seated by a grant."""
    epoch = state.log.epoch_at(index)
    grant = grant_of(epoch)
    return grant > 0 and epoch == first_epoch(grant) != state.log.epoch_at(Index(index - 1))
