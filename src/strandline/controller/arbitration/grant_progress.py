"""The steps by which a group without a quorum gets a leader from the controller. Pure.

Why:    each step waits for answers of other brokers, and each may fail or be overtaken. A table of
        transitions shows all steps at once.
How:    STABLE -- no side elects a leader, one may be appointed --> STUCK
        STUCK -- for `STUCK_MS`, and no member knows a living leader: BeginGrant --> GRANTED
        GRANTED -- one of the members that answered may be appointed: await votes --> FENCED
        FENCED -- these votes are free: AppointLeader --> APPOINTED
        APPOINTED -- its leader has reported its voters stable --> STABLE
        APPOINTED -- not for `APPOINTMENT_MS`, doubled with each grant: BeginGrant --> GRANTED

        The committed record decides between GRANTED, APPOINTED and the rest: a step that failed, or
        a new leader of the controller, starts again from there at the next look. A grant that has
        begun is finished even if the topic's key is switched off: fenced members stand for no
        election. The driver (`broker.groups.arbitration`) performs the effects and feeds their
        results back as events. `TRANSITIONS` has one row for each; the first whose guard holds is
        taken.
Owns:   state and timer of each stuck group; the controller's leader forgets both with its lead.
Source: design section 6, 2; decisions 0016 and 0020; `arbiter` for the members that may lead."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple, Protocol

from strandline.controller.arbitration.member_reports import MemberReports
from strandline.controller.arbitration.sides import Need, Reach, cuts_of
from strandline.controller.commands import AppointLeader, BeginGrant
from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId, Epoch, Index, first_epoch

STUCK_MS = 1_000
"""How long a group has no reachable quorum before the controller fences it; detecting that brokers
are silent takes longer."""
APPOINTMENT_MS = 5_000
"""Half of the time that the first appointed leader has to report. Each later leader has twice as
long as the one before: a group has `GRANT_MAX` grants in its life."""
APPOINTMENT_DOUBLINGS_MAX = 10


class State(Enum):
    """The step that a group is in."""

    STABLE = auto()
    """It continues by itself."""
    STUCK = auto()
    """No side of its members can elect a leader, and one side may be appointed."""
    GRANTED = auto()
    """A new grant has begun: the controller fences its members."""
    FENCED = auto()
    """Enough members are fenced; votes that they have delegated to earlier leaders run out."""
    APPOINTED = auto()
    """A leader is appointed, and has not reported its voters stable."""


# ---- events --------------------------------------------------------------------------------------


class FenceAnswer(Protocol):
    """A fenced member: the end of its log, how long its vote is delegated, and the members that it
    does not hear."""

    @property
    def epoch(self) -> Epoch: ...
    @property
    def last_epoch(self) -> Epoch: ...
    @property
    def last_index(self) -> Index: ...
    @property
    def lost_state(self) -> bool: ...
    @property
    def promised_ms(self) -> int: ...
    @property
    def configured(self) -> Index: ...
    @property
    def silent(self) -> tuple[BrokerId, ...]: ...


Answers = Mapping[BrokerId, FenceAnswer]


@dataclass(frozen=True, slots=True)
class Looked:
    """The periodic look at all groups."""


@dataclass(frozen=True, slots=True)
class LeaderReported:
    """A member knows a living leader, which may serve out of the controller's reach."""


@dataclass(frozen=True, slots=True)
class NoLeaderReported:
    """All members that are heard were asked, and none knows a living leader."""


@dataclass(frozen=True, slots=True)
class RecordApplied:
    """The controller has answered commands: the record may have changed."""


@dataclass(frozen=True, slots=True)
class MembersFenced:
    """These members have answered the fence; `need` is what acks=all takes."""

    answers: Answers
    need: Need


@dataclass(frozen=True, slots=True)
class VotesReleased:
    """The members of this side have delegated their votes to no earlier leader any more."""

    side: Answers


Event = Looked | LeaderReported | NoLeaderReported | RecordApplied | MembersFenced | VotesReleased


# ---- effects -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AskWhoLeads:
    """Ask all members that are heard whether they know a living leader."""


@dataclass(frozen=True, slots=True)
class FenceMembers:
    """Fence all members that are heard."""


@dataclass(frozen=True, slots=True)
class AwaitVotes:
    """Wait until these members' votes are free: an earlier leader may answer reads until then."""

    side: Answers

    @property
    def ms(self) -> int:
        """How long that takes, in ms."""
        return max(one.promised_ms for one in self.side.values())


@dataclass(frozen=True, slots=True)
class NotifyLeader:
    """Tell the chosen leader that it leads; again at each look, until it has reported."""


Effect = AskWhoLeads | BeginGrant | FenceMembers | AwaitVotes | AppointLeader | NotifyLeader


# ---- input of guards -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One group as the controller's leader sees it at `now_ms`.

    `may_begin`: its topic allows grants, or a loss was declared. `patience_ratio` scales all
    waits."""

    partition: Partition
    reach: Reach
    reports: MemberReports
    now_ms: int
    may_begin: bool = True
    patience_ratio: float = 1.0

    def able(self, some: frozenset[BrokerId]) -> frozenset[BrokerId]:
        """Those of these brokers whose replicas vote and take entries."""
        return self.reports.able(self.partition.group, some)

    @property
    def stands_still(self) -> bool:
        """Whether the members cannot elect a leader, and a grant may give them one."""
        return not continues(self.partition, self.reach, self.able(self.reach.heard))

    @property
    def may_appoint(self) -> bool:
        """Whether another grant may give the group a leader. Members that the last leader waited
        for count: the group may have no others left."""
        return self.reach.may_appoint(
            self.partition, self.reports.voting(self.partition.group, self.reach.heard)
        )


def continues(partition: Partition, reach: Reach, able: frozenset[BrokerId]) -> bool:
    """Whether a group with these heard and able members needs no grant. The cheap question comes
    first: nearly all of thousands of groups need none."""
    voters = partition.voters
    if not partition.pending and able.issuperset(voters) and reach.is_whole(voters):
        return True
    return not reach.stands_still(partition, able)


class GrantProgress:
    """State and timer of one group; see the module."""

    __slots__ = ("appointment_count", "grant", "since_ms", "state")

    def __init__(self, facts: Facts) -> None:
        self.state = State.STABLE
        # The grant of the timer, and the start of the timer.
        self.grant = facts.partition.grant
        self.since_ms = facts.now_ms
        # Grants begun since the group last continued by itself, as far as this controller saw.
        self.appointment_count = 0

    def step(self, event: Event, facts: Facts) -> tuple[Effect, ...]:
        """Apply the first row that fits; returns its effects."""
        if type(event) is Looked and self.grant != facts.partition.grant:
            self.grant, self.since_ms = facts.partition.grant, facts.now_ms
            self.appointment_count += 1
        for row in TRANSITIONS:
            fits = row.event is type(event) and self.state in row.states
            if fits and row.guard(self, event, facts):
                self.state = row.after or self.state
                return row.action(self, event, facts)
        return ()

    def has_lasted(self, ms: int, facts: Facts) -> bool:
        """Whether the timer has run for this long."""
        return facts.now_ms - self.since_ms >= ms * facts.patience_ratio


# ---- guards --------------------------------------------------------------------------------------


def _always(_progress: GrantProgress, _event: Event, _facts: Facts) -> bool:
    return True


def _record_is_fenced(_progress: GrantProgress, _event: Event, facts: Facts) -> bool:
    return facts.partition.is_fenced


def _record_appoints(_progress: GrantProgress, _event: Event, facts: Facts) -> bool:
    return facts.partition.appointment is not None


def _is_overdue(progress: GrantProgress, _event: Event, facts: Facts) -> bool:
    patience_ms = APPOINTMENT_MS << min(progress.appointment_count, APPOINTMENT_DOUBLINGS_MAX)
    is_appointed = facts.partition.appointment is not None
    return is_appointed and progress.has_lasted(patience_ms, facts) and facts.may_appoint


def _continues(_progress: GrantProgress, _event: Event, facts: Facts) -> bool:
    return not facts.may_begin or not facts.stands_still


def _is_stuck_for_long(progress: GrantProgress, _event: Event, facts: Facts) -> bool:
    return progress.has_lasted(STUCK_MS, facts)


def _stands_still(_progress: GrantProgress, _event: Event, facts: Facts) -> bool:
    return facts.stands_still


def _may_appoint(_progress: GrantProgress, _event: Event, facts: Facts) -> bool:
    return facts.may_appoint


def _may_appoint_side(progress: GrantProgress, event: Event, facts: Facts) -> bool:
    return bool(_side(progress, event, facts))


def _side(progress: GrantProgress, event: Event, facts: Facts) -> Answers:
    """The answers that support the appointment: of this grant, of members that have their state and
    hear each other; empty if they are too few."""
    assert isinstance(event, MembersFenced)
    partition = facts.partition
    epoch = first_epoch(partition.grant)
    fenced = {
        broker: one
        for broker, one in event.answers.items()
        if one.epoch == epoch and not one.lost_state
    }
    cuts = cuts_of({broker: one.silent for broker, one in fenced.items()}, fenced)
    able = facts.able(frozenset(fenced))
    side = Reach(able, cuts).side(partition, able, event.need)
    if not side and progress.has_lasted(APPOINTMENT_MS, facts):
        # The member took nothing from the earlier leader, but has answered the fence, durably.
        side = Reach(frozenset(fenced), cuts).side(partition, fenced, event.need)
    return {broker: one for broker, one in fenced.items() if broker in side}


# ---- actions: the effects of a row ---------------------------------------------------------------


def _nothing(_progress: GrantProgress, _event: Event, _facts: Facts) -> tuple[Effect, ...]:
    return ()


def _restart_timer(progress: GrantProgress, _event: Event, facts: Facts) -> tuple[Effect, ...]:
    progress.since_ms = facts.now_ms
    return ()


def _ask_who_leads(_progress: GrantProgress, _event: Event, _facts: Facts) -> tuple[Effect, ...]:
    return (AskWhoLeads(),)


def _notify_leader(_progress: GrantProgress, _event: Event, _facts: Facts) -> tuple[Effect, ...]:
    return (NotifyLeader(),)


def _ask_and_notify(_progress: GrantProgress, _event: Event, _facts: Facts) -> tuple[Effect, ...]:
    return AskWhoLeads(), NotifyLeader()


def _begin_grant(_progress: GrantProgress, _event: Event, facts: Facts) -> tuple[Effect, ...]:
    return (BeginGrant(facts.partition.group, facts.partition.grant),)


def _fence_members(_progress: GrantProgress, _event: Event, _facts: Facts) -> tuple[Effect, ...]:
    return (FenceMembers(),)


def _await_votes(progress: GrantProgress, event: Event, facts: Facts) -> tuple[Effect, ...]:
    return (AwaitVotes(_side(progress, event, facts)),)


def _appoint_leader(_progress: GrantProgress, event: Event, facts: Facts) -> tuple[Effect, ...]:
    assert isinstance(event, VotesReleased)
    answers = sorted(event.side.items())
    command = AppointLeader(
        group=facts.partition.group,
        grant=facts.partition.grant,
        ends=tuple((broker, one.last_epoch, one.last_index) for broker, one in answers),
        configured=tuple(one.configured for _, one in answers),
    )
    return (command,)


Guard = Callable[[GrantProgress, Event, Facts], bool]
Action = Callable[[GrantProgress, Event, Facts], tuple[Effect, ...]]


class Transition(NamedTuple):
    """One row: in one of `states`, on `event`, if `guard` holds, go to `after` (None: stay) and
    return the effects of `action`."""

    states: tuple[State, ...]
    event: type[Event]
    guard: Guard
    after: State | None
    action: Action


ANY = tuple(State)
STABLE, STUCK, GRANTED, FENCED, APPOINTED = ANY

# fmt: off
TRANSITIONS: tuple[Transition, ...] = tuple(Transition(*row) for row in (
    (ANY,                      Looked,           _record_is_fenced,  GRANTED,   _fence_members),
    (ANY,                      Looked,           _is_overdue,        APPOINTED, _ask_and_notify),
    (ANY,                      Looked,           _record_appoints,   APPOINTED, _notify_leader),
    (ANY,                      Looked,           _continues,         STABLE,    _nothing),
    (ANY,                      Looked,           _is_stuck_for_long, STUCK,     _ask_who_leads),
    (ANY,                      Looked,           _always,            STUCK,     _nothing),
    ((STUCK, APPOINTED),       LeaderReported,   _always,            None,      _restart_timer),
    ((STUCK,),                 NoLeaderReported, _stands_still,      None,      _begin_grant),
    ((APPOINTED,),             NoLeaderReported, _may_appoint,       None,      _begin_grant),
    ((STUCK, APPOINTED),       RecordApplied,    _record_is_fenced,  GRANTED,   _fence_members),
    ((STUCK, GRANTED, FENCED), RecordApplied,    _record_appoints,   APPOINTED, _notify_leader),
    ((GRANTED,),               MembersFenced,    _may_appoint_side,  FENCED,    _await_votes),
    ((FENCED,),                VotesReleased,    _always,            None,      _appoint_leader),
))
# fmt: on
