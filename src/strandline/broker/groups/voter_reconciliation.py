"""Who of those who hold a partition's log votes, while some of them are lost or far behind.

Why:    a voter that is gone leaves a group one failure nearer to its end. Kafka's ISR shrinks, so
        that the last of three replicas serves; so do the voters here, where the topic asks for it.
How:    out:     a voter that acknowledges nothing any more, at once when its broker is silent, and
                 once it lacks something for `replica.lag.time.max.ms` where it is only slow
        back:    one of the topic's own voters that has kept up for a while; at once where fewer
                 vote than acks=all asks for, as in Kafka, but only once in ten minutes: who is gone
                 again may take what is left with it, and each seat costs one of the grants; later
                 and later where that goes on
        gone:    a voter that no longer belongs to the topic, once the others can do without it
        stands in, or does no more: an observer, once nothing of the above is to be done
                 (`controller.promotion`)
        none:    where more than a majority has to commit what is lost with them: then a majority
                 has to be enough first (`is_stuck`)
        never:   whoever leads, or a voter without whom too few would be left to commit the change

        What is wanted is asked of the controller and carried out by `moving`, as a move is.
Owns:   since when each member of a group led here keeps up, or does not; since when its own voters
        have sufficed; when a leader was last to hand over to one of them.
Source: design section 6; decisions 0020 and 0025; Kafka's `replica.lag.time.max.ms`."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from strandline.base.clock import Clock
from strandline.controller.arbitration.promotion import (
    HANDOVER_RETRY_MS,
    Bounds,
    Code,
    Observer,
    Situation,
    Verdict,
    decide_promotion,
    wanted_count,
)
from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId, GroupId
from strandline.placement.policy.document import Promotion
from strandline.raft.group.configuration import Configuration

SILENT_MS = 2_000
"""So long a voter acknowledges nothing, and its broker is not heard, before it is out."""
RETURN_MS = 5_000
"""So long who comes back has to keep up before."""
CALM_MS = 600_000
"""Who came back so lately, before this time, has to do so even where acks=all is refused."""
FREE_RETURNS = 3
RETURN_DOUBLINGS_MAX = 7
GRANTS_CALM_MS = 3_600_000
"""Who left by a grant, and came back, more than `FREE_RETURNS` times with less than this between
them, has to keep up for twice as long each further time, up to 640 s: a link that flaps would use
up all of a partition's grants."""


@dataclass(frozen=True, slots=True)
class Attendance:
    """Whether a member keeps up, and since when."""

    is_there: bool
    since_ms: int


@dataclass(frozen=True, slots=True)
class Choice:
    """Who shall vote. `is_settled`: it stays so until somebody's health changes. `verdict`: what is
    done about observers, where that is what there is to do."""

    voters: tuple[BrokerId, ...]
    is_settled: bool
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Lag:
    """What a member has not acknowledged, and since when; -1 where the leader does not know."""

    count: int
    ms: int


@dataclass(frozen=True, slots=True)
class Health:
    """How members do, as their leader knows it. `lacks_ms`: for how long one lacks something;
    `lag_ms`: the topic's `replica.lag.time.max.ms`."""

    keeps_up: Callable[[BrokerId], bool]
    is_heard: Callable[[BrokerId], bool]
    lacks_ms: Callable[[BrokerId], int]
    lag_ms: int

    def patience_ms(self, broker: BrokerId, silent_ms: float) -> float:
        """How long one that does not keep up is waited for."""
        if not self.is_heard(broker):
            return silent_ms
        return 0 if self.lacks_ms(broker) >= self.lag_ms else self.lag_ms


@dataclass(frozen=True, slots=True)
class StandIns:
    """What the promotion of observers goes by."""

    policy: Promotion
    min_insync: int
    bounds: Bounds
    lag: Callable[[BrokerId], Lag]
    levels: Callable[[BrokerId, BrokerId], int]
    """How many levels of the topology two brokers have in common."""
    regions: Mapping[BrokerId, str]
    regions_down: frozenset[str]


@dataclass(slots=True)
class _Coming:
    """When a member that does not vote was last seen to keep up. `is_calm`: it had not for long.
    `grant`: the last by then; `costly_count`: how often there was another one since the time
    before."""

    since_ms: int
    grant: int
    is_calm: bool = True
    costly_count: int = 0

    @property
    def return_ms(self) -> int:
        """How long it has to keep up before it votes."""
        doublings = min(max(self.costly_count - FREE_RETURNS, 0), RETURN_DOUBLINGS_MAX)
        return RETURN_MS << doublings


@dataclass(slots=True)
class _Known:
    """What is remembered of a group that is led here."""

    attendance: dict[BrokerId, Attendance] = field(default_factory=dict)
    healed_since_ms: int | None = None
    """Since when its own voters have sufficed, while observers vote beside them."""
    handed_over_ms: int | None = None

    def see(self, broker: BrokerId, now: int, *, is_there: bool) -> Attendance:
        """How a member does now."""
        last = self.attendance.get(broker)
        if last is None or last.is_there != is_there:
            last = self.attendance[broker] = Attendance(is_there, now)
        return last


class VoterReconciliation:
    """See the module; one per broker."""

    def __init__(self, clock: Clock, *, patience_ratio: float = 1.0) -> None:
        """`patience_ratio`: see `ReplicationSettings`."""
        self._clock = clock
        self._ratio = patience_ratio
        self._known: dict[GroupId, _Known] = {}
        # Also of groups that others lead meanwhile: a link that flaps takes the lead away, too.
        self._comings: dict[tuple[GroupId, BrokerId], _Coming] = {}

    def forget(self, group: GroupId) -> None:
        """It is not led here any more."""
        self._known.pop(group, None)

    def note_handed_over(self, group: GroupId) -> None:
        """Its leader, here, has just told somebody else to lead."""
        self._known.setdefault(group, _Known()).handed_over_ms = self._clock.monotonic_ms()

    def choose(
        self,
        partition: Partition,
        leader: BrokerId,
        health: Health,
        *,
        min_insync: int,
        is_ready: Callable[[BrokerId], bool],
        stand_ins: StandIns | None = None,
    ) -> Choice:
        """Who should vote in a group that `leader`, this broker, leads. `is_ready`: who keeps up
        and has what was written while it did not vote."""
        now = self._clock.monotonic_ms()
        known = self._known.setdefault(partition.group, _Known())
        attendance = known.attendance
        observers = partition.observers if stand_ins is not None else ()
        is_short = len(partition.voters) < min(min_insync, len(partition.replicas))
        voters: list[BrokerId] = []
        is_settled = True
        for broker in dict.fromkeys((*partition.replicas, *partition.voters, *observers)):
            is_there = broker == leader or health.keeps_up(broker)
            last = known.see(broker, now, is_there=is_there)
            votes = broker in partition.voters
            if not votes and broker in observers:
                continue
            patience_ms = 0.0
            if is_there and not votes:
                coming = self._see_coming(partition, broker, last.since_ms)
                if not (is_short and coming.is_calm and is_ready(broker)):
                    patience_ms = coming.return_ms * self._ratio
            if not is_there:
                patience_ms = health.patience_ms(broker, SILENT_MS * self._ratio)
            is_due = now - last.since_ms >= patience_ms or broker == leader
            if votes != is_there and not is_due:
                is_settled = False
            if is_there if is_due else votes:
                voters.append(broker)
        wanted = tuple(one for one in voters if one in (*partition.replicas, *observers))
        verdict = None
        is_usual = not partition.acting  # Then no observer votes, nor is one needed.
        if stand_ins is not None and not is_usual and set(wanted) == set(partition.voters):
            verdict = self._decide(partition, leader, known, stand_ins, health.is_heard)
            is_settled = is_settled and _is_settled(verdict, partition, attendance)
            if verdict.code is Code.PROMOTE and verdict.broker is not None:
                wanted = (*wanted, verdict.broker)
            elif verdict.code is Code.DEMOTE:
                wanted = tuple(one for one in wanted if one != verdict.broker)
        if not _can_go_on(wanted, partition.voters, attendance):
            return Choice(partition.voters, is_settled)
        return Choice(wanted, is_settled, verdict)

    def _see_coming(self, partition: Partition, broker: BrokerId, since_ms: int) -> _Coming:
        key, grant = (partition.group, broker), partition.grant
        coming = self._comings.get(key)
        if coming is None:
            coming = self._comings[key] = _Coming(since_ms, grant)
        elif coming.since_ms != since_ms:
            pause_ms = since_ms - coming.since_ms
            coming.is_calm = pause_ms >= CALM_MS * self._ratio
            if pause_ms >= GRANTS_CALM_MS * self._ratio:
                coming.costly_count = 0
            elif grant > coming.grant:
                coming.costly_count += 1
            coming.since_ms, coming.grant = since_ms, grant
        return coming

    def is_stuck(
        self,
        group: GroupId,
        leader: BrokerId,
        present: Configuration,
        health: Health,
    ) -> bool:
        """Whether `leader`, this broker, can commit nothing without voters that have been lost for
        long enough to leave, though a majority keeps up."""
        if present.min_insync <= 1:
            return False
        now = self._clock.monotonic_ms()
        known = self._known.setdefault(group, _Known())
        ready: list[BrokerId] = []
        left: list[BrokerId] = []
        for broker in present.all_voters:
            is_there = broker == leader or health.keeps_up(broker)
            since_ms = known.see(broker, now, is_there=is_there).since_ms
            if is_there:
                ready.append(broker)
            patience_ms = health.patience_ms(broker, SILENT_MS * self._ratio)
            if is_there or now - since_ms < patience_ms:
                left.append(broker)
        return not present.can_commit(left) and present.wins_election(ready)

    def is_calm(self, group: GroupId, leader: BrokerId, present: Configuration) -> bool:
        """Whether a write quorum has kept up for as long as who comes back has to."""
        now = self._clock.monotonic_ms()
        attendance = self._known.setdefault(group, _Known()).attendance
        absent = Attendance(is_there=False, since_ms=now)
        seen = {one: attendance.get(one, absent) for one in present.voters}
        calm_ms = now - RETURN_MS * self._ratio
        return present.can_commit(
            [
                one
                for one, last in seen.items()
                if one == leader or (last.is_there and last.since_ms <= calm_ms)
            ]
        )

    def _decide(
        self,
        partition: Partition,
        leader: BrokerId,
        known: _Known,
        stand_ins: StandIns,
        is_heard: Callable[[BrokerId], bool],
    ) -> Verdict:
        """What to do about observers, while nobody else leaves or returns."""
        now = self._clock.monotonic_ms()
        attendance = known.attendance
        own = partition.replicas
        voting = tuple(one for one in own if one in partition.voters)

        def seen(broker: BrokerId) -> Observer:
            lag, last = stand_ins.lag(broker), attendance[broker]
            return Observer(
                broker=broker,
                is_heard=is_heard(broker),
                kept_up_ms=now - last.since_ms if last.is_there else -1,
                lag_count=lag.count,
                lag_ms=lag.ms,
                levels={one: stand_ins.levels(broker, one) for one in {*own, leader}},
            )

        case = Situation(
            policy=stand_ins.policy,
            own=own,
            voting=voting,
            promoted=tuple(one for one in partition.voters if one in partition.observers),
            observers=(),
            leader=leader,
            min_insync=stand_ins.min_insync,
            regions=stand_ins.regions,
            regions_down=stand_ins.regions_down,
            bounds=stand_ins.bounds,
        )
        # Who was seated when none of them was left stays until one of them votes again.
        are_there = bool(voting) and all(attendance[one].is_there for one in voting)
        if not are_there or wanted_count(case) >= len(case.promoted):
            known.healed_since_ms = None
        elif known.healed_since_ms is None:
            known.healed_since_ms = now
        since_ms = now if known.healed_since_ms is None else known.healed_since_ms
        case = replace(case, healed_ms=now - since_ms)
        verdict = decide_promotion(case)
        if verdict.code not in (Code.ENOUGH, Code.HEALING):  # Mostly nobody has to look at them.
            observers = tuple(map(seen, partition.observers))
            verdict = decide_promotion(replace(case, observers=observers))
        if verdict.code is Code.HAND_OVER:
            last_ms = known.handed_over_ms
            if last_ms is not None and now - last_ms < HANDOVER_RETRY_MS * self._ratio:
                return replace(verdict, code=Code.HEALING)
        return verdict


def _is_settled(
    verdict: Verdict, partition: Partition, attendance: Mapping[BrokerId, Attendance]
) -> bool:
    """Whether time alone changes nothing: who does not keep up will be looked at now and then."""
    if verdict.code is Code.BEHIND:
        others = (one for one in partition.observers if one not in partition.voters)
        return not any(attendance[one].is_there for one in others)
    return verdict.code in (Code.ENOUGH, Code.NOBODY)


def _can_go_on(
    after: Collection[BrokerId],
    before: Collection[BrokerId],
    known: dict[BrokerId, Attendance],
) -> bool:
    """Whether a majority of both, as the change needs it, keeps up."""
    return all(
        sum(known[one].is_there for one in voters) > len(voters) // 2 for voters in (after, before)
    )
