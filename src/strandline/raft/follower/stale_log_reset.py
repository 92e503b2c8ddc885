"""A replica that was no member for a while begins its log anew.

Why:    In a compacted log the others remove entries while this replica is no member: a key is
        deleted, and then its tombstone. This log still has that key, and cannot tell by its
        entries.
How:    With the first entry of a log, the leader names the index of its last configuration that is
        committed for certain; the replica notes it, durably, before the entry (`joined`). If behind
        that index one configuration lacks this replica and a later one has it again, the log is of
        two memberships. That holds whatever is known of the commit: a leader appends the later one
        only once the other is committed.
            The leader sends a new member nothing before its membership is committed for certain:
        entries received by a membership that is lost would belong to none.
            The exception is an appointment: its configuration supersedes others that may not be
        committed. The voters that it names commit it, and they may have been voters all the time.
        While the controller may appoint them, no tombstone goes without them
        (`tombstones.outlived_index`).
            The replica finds this out before it acknowledges the entry that makes it a member
        again, so before it can vote. From then on it counts for nothing, as after the loss of a
        disk (`rejoin`).
            Other logs lose only whole prefixes: such a replica continues with what it has.
            If another data directory took this one's place, its log is known to be outdated when it
        is opened. It begins anew once a leader is heard: until then it may be all that is left.
Owns:   `RaftState.joined` and `is_outdated`.
Source: decisions 0037 and 0038."""

from strandline.model.ids import BrokerId, Index, first_epoch, grant_of
from strandline.raft.events import FoundOutdated
from strandline.raft.group.configuration import Configuration
from strandline.raft.messages import AppendRequest
from strandline.raft.state import RaftState
from strandline.raft.transitions import Role

OUTDATED = Index(-2)
"""In the place of `joined`: the log is of an earlier data directory."""


def note_joining(state: RaftState, message: AppendRequest) -> None:
    """The first entries of a log are about to be appended."""
    joined = max(message.commit, message.configured)
    if state.joined is not None and state.joined < joined:
        state.joined = joined
        state.persist()


def check_outdated(state: RaftState) -> None:
    """A leader's append is taken over and not acknowledged yet: configurations may have come
    with it, or the driver has reported that the log is compacted."""
    state.must_check_outdated = False
    if state.joined is None or state.leader_state is not None or state.is_outdated_reported:
        return
    decide_outdated(state)
    if state.is_outdated:
        state.is_outdated_reported = True
        state.effects.append(FoundOutdated())


def decide_outdated(state: RaftState) -> None:
    """If the log is of two memberships: if compacted, count for nothing; else keep it for good."""
    if state.joined is None or state.is_outdated or state.role != Role.FOLLOWER:
        return
    left = _last_absence(state, state.joined)
    if left is None:
        return
    assert state.leader_state is None, "a leader's log is not outdated"
    if state.is_compacted:
        state.is_outdated = state.lost_state = True
    else:
        # The others have removed whole prefixes only: this log is as good as a new one.
        state.joined = left
        state.persist()


def _last_absence(state: RaftState, joined: Index) -> Index | None:
    """The index of the last configuration behind `joined` that lacks this replica, if it is a
    member again since; else None."""
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
        if _is_appointment(state, index):
            if state.self_id in configuration.voters:
                return None
            # It is committed without its observers; until that is known, it may be lost.
            is_replaced = later is not None and _roles(later) != _roles(configuration)
            is_back = index <= state.commit or is_replaced
        later = configuration
    return None


def last_certain(state: RaftState) -> Index:
    """The index of the last configuration that is committed for certain: this leader knows the
    commit, or roles changed behind it, other than by an appointment. -1 if there is none."""
    return _last_certain(state)[0]


def is_certain_member(state: RaftState, peer: BrokerId) -> bool:
    """Whether `peer` is a member whatever may be lost, or votes already: then it may be needed
    to commit anything at all. For a configuration that is not known to be committed."""
    return peer in state.configuration.all_voters or peer in _last_certain(state)[1].members


def _last_certain(state: RaftState) -> tuple[Index, Configuration]:
    later: tuple[Index, Configuration] | None = None
    for index, configuration in reversed(state.log.configurations):
        if index <= state.commit:
            return index, configuration
        is_changed = later is not None and _roles(later[1]) != _roles(configuration)
        if is_changed and later is not None and not _is_appointment(state, later[0]):
            return index, configuration
        later = index, configuration
    return Index(-1), state.start_configuration


def _roles(one: Configuration) -> tuple[frozenset[BrokerId], ...]:
    """What changes only once the configuration before is committed, appointments excepted; a
    smaller write quorum comes into force at any time."""
    return frozenset(one.voters), frozenset(one.old_voters), frozenset(one.observers)


def _is_appointment(state: RaftState, index: Index) -> bool:
    """Whether the entry there is the first one of a leader that was appointed by a grant."""
    epoch = state.log.epoch_at(index)
    grant = grant_of(epoch)
    return grant > 0 and epoch == first_epoch(grant) != state.log.epoch_at(Index(index - 1))
