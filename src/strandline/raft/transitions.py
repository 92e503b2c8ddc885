"""The roles of a replica, and every transition between them: one table.

Why:    the rules of who may lead are the core of Raft; in one table a reader, the code and a test
        see the same ones.
How:    a part of the room names the cause of a change (`RaftState.follow`, `become`, `lead`);
        `NEXT_ROLE` says which role follows. A pair that is not in the table is a programming error.

            FOLLOWER --timed out--> PRECANDIDATE --pre-votes won--> CANDIDATE --votes won--> LEADER
            LEADER --quorum lost, removal committed, handed over, epoch superseded--> FOLLOWER
            any other --leader found, epoch superseded, barred, ...--> FOLLOWER
Owns:   nothing.
Source: Raft thesis, figure 3.2; its sections are those of the table. "0016": decision 0016."""

from enum import IntEnum, auto
from typing import NamedTuple


class Role(IntEnum):
    """What a replica is at the moment."""

    FOLLOWER = 0
    PRECANDIDATE = 1
    CANDIDATE = 2
    LEADER = 3


class Cause(IntEnum):
    """What makes a replica change its role, or stay in it with another leader or epoch."""

    TIMED_OUT = auto()
    BARRED = auto()
    PREVOTES_WON = auto()
    VOTES_WON = auto()
    PREVOTE_YIELDED = auto()
    LEADER_FOUND = auto()
    EPOCH_SUPERSEDED = auto()
    QUORUM_LOST = auto()
    REMOVAL_LEARNED = auto()
    REMOVAL_COMMITTED = auto()
    HANDED_OVER = auto()
    TRANSFER_RECEIVED = auto()
    TRANSFER_ABANDONED = auto()
    VOTE_REQUESTED_BY_LEADER = auto()
    APPOINTED = auto()


class Transition(NamedTuple):
    """In each of the roles `before`, `cause` leads to the role `after`, if `guard` holds.

    `section`: of the Raft thesis, or a decision record."""

    cause: Cause
    before: tuple[Role, ...]
    after: Role
    guard: str
    section: str


_FOLLOWER, _PRECANDIDATE, _CANDIDATE, _LEADER = Role
_NOT_LEADING = (_FOLLOWER, _PRECANDIDATE, _CANDIDATE)

# fmt: off
TRANSITIONS = (
    Transition(Cause.TIMED_OUT, (_FOLLOWER, _CANDIDATE), _PRECANDIDATE,
               "it may stand for election", "9.6"),
    Transition(Cause.BARRED, _NOT_LEADING, _FOLLOWER,
               "the time is out, but it is no voter, lost its disk, or lacks the grant's entries",
               "4.2.2"),
    Transition(Cause.PREVOTES_WON, (_PRECANDIDATE,), _CANDIDATE,
               "a majority would vote for it, and it heard of no leader meanwhile", "9.6"),
    Transition(Cause.VOTES_WON, (_CANDIDATE,), _LEADER,
               "a majority voted for it in this epoch; of both sets, if joint", "3.4"),
    Transition(Cause.PREVOTE_YIELDED, (_PRECANDIDATE,), _FOLLOWER,
               "it grants the pre-vote of a replica with a lower id", "9.6"),
    Transition(Cause.LEADER_FOUND, _NOT_LEADING, _FOLLOWER,
               "a message of this epoch's leader; one epoch has one leader", "3.4"),
    Transition(Cause.EPOCH_SUPERSEDED, tuple(Role), _FOLLOWER,
               "a message of a higher epoch", "3.3"),
    Transition(Cause.QUORUM_LOST, (_LEADER,), _FOLLOWER,
               "no quorum answered for an election time-out", "6.2"),
    Transition(Cause.REMOVAL_LEARNED, (_PRECANDIDATE, _CANDIDATE), _FOLLOWER,
               "a refused vote named a committed configuration without it", "4.2.3"),
    Transition(Cause.REMOVAL_COMMITTED, (_LEADER,), _FOLLOWER,
               "the configuration without it is committed", "4.2.2"),
    Transition(Cause.HANDED_OVER, (_LEADER,), _FOLLOWER,
               "the transfer target was sent the whole log", "3.10"),
    Transition(Cause.TRANSFER_RECEIVED, (_FOLLOWER, _PRECANDIDATE), _CANDIDATE,
               "its log has all that the leader's TimeoutNow names", "3.10"),
    Transition(Cause.TRANSFER_ABANDONED, (_FOLLOWER,), _CANDIDATE,
               "it handed over, and knows no leader since", "3.10"),
    Transition(Cause.VOTE_REQUESTED_BY_LEADER, (_FOLLOWER, _PRECANDIDATE), _FOLLOWER,
               "it acknowledged the whole log of the leader that hands over", "3.10"),
    Transition(Cause.APPOINTED, (_FOLLOWER,), _LEADER,
               "the controller chose it, its log is still the one it was chosen for, and it voted "
               "for nobody in this epoch", "0016"),
)
# fmt: on

NEXT_ROLE = {
    (role, transition.cause): transition.after
    for transition in TRANSITIONS
    for role in transition.before
}
"""{(role before, cause): role after}"""
