"""Which brokers that hold a partition's log vote, while some of them are lost or far behind.

Why:    a lost voter leaves a group one failure nearer to its end. Kafka's ISR shrinks until the
        last of three replicas serves; so do the voters here, if the topic allows it.
How:    removed    a voter that acknowledges nothing: at once if its broker is silent; after
                   `replica.lag.time.max.ms` of lag if it is only slow
        returned   one of the topic's own voters, after it has kept up for a while. At once if fewer
                   vote than acks=all asks for, as in Kafka, but only once in ten minutes: a replica
                   that leaves again may take the rest with it, and each appointment costs a grant.
                   A replica that keeps leaving waits longer each time
        dropped    a voter that does not belong to the topic any more, once the others suffice
        promoted, demoted   an observer, if none of the above is due (`arbitration.promotion`)
        blocked    if commits need more than a majority and the lost voters are among them, a
                   majority has to suffice first (`is_stuck`)
        never removed       the leader, and a voter without which too few are left to commit the
                            change

        `moving` asks the controller for these voters and carries out the change, as it does a move.
Owns:   since when each member of a group led here keeps up, or does not; since when the group's own
        voters have sufficed; when a leader was last to hand over to one of them.
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
"""A voter is removed after it has acknowledged nothing for so long while its broker is silent."""
RETURN_MS = 5_000
"""A returning voter keeps up for so long before it votes."""
CALM_MS = 600_000
"""A voter that returned within this time has to keep up for `RETURN_MS` even if acks=all is
refused."""
FREE_RETURNS = 3
RETURN_DOUBLINGS_MAX = 7
GRANTS_CALM_MS = 3_600_000
"""A voter that left by a grant and returned more than `FREE_RETURNS` times, within this time of
each other, keeps up for twice as long at each further return, up to 640 s: a flapping link would
use up all grants of a partition."""


@dataclass(frozen=True, slots=True)
class Presence:
    """Whether a member keeps up, and since when."""

    is_present: bool
    since_ms: int


@dataclass(frozen=True, slots=True)
class Choice:
    """Which brokers should vote. `is_settled`: that stays so until the health of a broker
    changes. `verdict`: the decision about observers, if only that is left to decide."""

    voters: tuple[BrokerId, ...]
    is_settled: bool
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Lag:
    """How many entries a member lacks, and for how long; -1 if the leader does not know."""

    count: int
    ms: int


@dataclass(frozen=True, slots=True)
class Health:
    """The health of the members, as their leader knows it. `lacks_ms`: for how long a member has
    lacked entries;
    `lag_ms`: the topic's `replica.lag.time.max.ms`."""

    keeps_up: Callable[[BrokerId], bool]
    is_heard: Callable[[BrokerId], bool]
    lacks_ms: Callable[[BrokerId], int]
    lag_ms: int

    def patience_ms(self, broker: BrokerId, silent_ms: float) -> float:
        """How long the group waits for a member that does not keep up."""
        if not self.is_heard(broker):
            return silent_ms
        return 0 if self.lacks_ms(broker) >= self.lag_ms else self.lag_ms


@dataclass(frozen=True, slots=True)
class PromotionInputs:
    """What the promotion of observers depends on."""

    policy: Promotion
    min_insync: int
    bounds: Bounds
    lag: Callable[[BrokerId], Lag]
    levels: Callable[[BrokerId, BrokerId], int]
    """How many levels of the topology two brokers have in common."""
    regions: Mapping[BrokerId, str]
    regions_down: frozenset[str]


@dataclass(slots=True)
class _Return:
    """Since when a member that does not vote keeps up. `is_calm`: its last return was long
    before. `grant`: the last grant at that time; `costly_count`: returns that came with another
    grant."""

    since_ms: int
    grant: int
    is_calm: bool = True
    costly_count: int = 0

    @property
    def return_ms(self) -> int:
        """How long the member keeps up before it votes."""
        doublings = min(max(self.costly_count - FREE_RETURNS, 0), RETURN_DOUBLINGS_MAX)
        return RETURN_MS << doublings


@dataclass(slots=True)
class _Known:
    """What this broker remembers of a group that it leads."""

    presence: dict[BrokerId, Presence] = field(default_factory=dict)
    healed_since_ms: int | None = None
    """Since when the topic's own voters have sufficed, while observers vote beside them."""
    handed_over_ms: int | None = None

    def see(self, broker: BrokerId, now: int, *, is_present: bool) -> Presence:
        """Note whether a member keeps up now; since when that has been so."""
        last = self.presence.get(broker)
        if last is None or last.is_present != is_present:
            last = self.presence[broker] = Presence(is_present, now)
        return last


class VoterReconciliation:
    """See the module; one per broker."""

    def __init__(self, clock: Clock, *, patience_ratio: float = 1.0) -> None:
        """`patience_ratio`: see `ReplicationSettings`."""
        self._clock = clock
        self._ratio = patience_ratio
        self._known: dict[GroupId, _Known] = {}
        # Kept also while other brokers lead: a flapping link takes the leadership away, too.
        self._returns: dict[tuple[GroupId, BrokerId], _Return] = {}

    def forget(self, group: GroupId) -> None:
        """Another broker leads the group."""
        self._known.pop(group, None)

    def note_handed_over(self, group: GroupId) -> None:
        """The leader, this broker, has just begun to hand over."""
        self._known.setdefault(group, _Known()).handed_over_ms = self._clock.monotonic_ms()

    def choose(
        self,
        partition: Partition,
        leader: BrokerId,
        health: Health,
        *,
        min_insync: int,
        is_ready: Callable[[BrokerId], bool],
        promotion: PromotionInputs | None = None,
    ) -> Choice:
        """Which brokers should vote in a group that `leader`, this broker, leads. `is_ready`:
        whether a broker keeps up and has what was written while it did not vote."""
        now = self._clock.monotonic_ms()
        known = self._known.setdefault(partition.group, _Known())
        presence = known.presence
        observers = partition.observers if promotion is not None else ()
        is_short = len(partition.voters) < min(min_insync, len(partition.replicas))
        voters: list[BrokerId] = []
        is_settled = True
        for broker in dict.fromkeys((*partition.replicas, *partition.voters, *observers)):
            is_present = broker == leader or health.keeps_up(broker)
            last = known.see(broker, now, is_present=is_present)
            votes = broker in partition.voters
            if not votes and broker in observers:
                continue
            patience_ms = 0.0
            if is_present and not votes:
                returning = self._note_return(partition, broker, last.since_ms)
                if not (is_short and returning.is_calm and is_ready(broker)):
                    patience_ms = returning.return_ms * self._ratio
            if not is_present:
                patience_ms = health.patience_ms(broker, SILENT_MS * self._ratio)
            is_due = now - last.since_ms >= patience_ms or broker == leader
            if votes != is_present and not is_due:
                is_settled = False
            if is_present if is_due else votes:
                voters.append(broker)
        wanted = tuple(one for one in voters if one in (*partition.replicas, *observers))
        verdict = None
        is_usual = not partition.acting  # Then no observer votes, nor is one needed.
        if promotion is not None and not is_usual and set(wanted) == set(partition.voters):
            verdict = self._decide(partition, leader, known, promotion, health.is_heard)
            is_settled = is_settled and _is_settled(verdict, partition, presence)
            if verdict.code is Code.PROMOTE and verdict.broker is not None:
                wanted = (*wanted, verdict.broker)
            elif verdict.code is Code.DEMOTE:
                wanted = tuple(one for one in wanted if one != verdict.broker)
        if not _can_continue(wanted, partition.voters, presence):
            return Choice(partition.voters, is_settled)
        return Choice(wanted, is_settled, verdict)

    def _note_return(self, partition: Partition, broker: BrokerId, since_ms: int) -> _Return:
        key, grant = (partition.group, broker), partition.grant
        returning = self._returns.get(key)
        if returning is None:
            returning = self._returns[key] = _Return(since_ms, grant)
        elif returning.since_ms != since_ms:
            pause_ms = since_ms - returning.since_ms
            returning.is_calm = pause_ms >= CALM_MS * self._ratio
            if pause_ms >= GRANTS_CALM_MS * self._ratio:
                returning.costly_count = 0
            elif grant > returning.grant:
                returning.costly_count += 1
            returning.since_ms, returning.grant = since_ms, grant
        return returning

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
            is_present = broker == leader or health.keeps_up(broker)
            since_ms = known.see(broker, now, is_present=is_present).since_ms
            if is_present:
                ready.append(broker)
            patience_ms = health.patience_ms(broker, SILENT_MS * self._ratio)
            if is_present or now - since_ms < patience_ms:
                left.append(broker)
        return not present.can_commit(left) and present.wins_election(ready)

    def is_calm(self, group: GroupId, leader: BrokerId, present: Configuration) -> bool:
        """Whether a write quorum has kept up for as long as a returning voter has to."""
        now = self._clock.monotonic_ms()
        presence = self._known.setdefault(group, _Known()).presence
        absent = Presence(is_present=False, since_ms=now)
        seen = {one: presence.get(one, absent) for one in present.voters}
        calm_ms = now - RETURN_MS * self._ratio
        return present.can_commit(
            [
                one
                for one, last in seen.items()
                if one == leader or (last.is_present and last.since_ms <= calm_ms)
            ]
        )

    def _decide(
        self,
        partition: Partition,
        leader: BrokerId,
        known: _Known,
        promotion: PromotionInputs,
        is_heard: Callable[[BrokerId], bool],
    ) -> Verdict:
        """What to do about observers, while no voter leaves or returns."""
        now = self._clock.monotonic_ms()
        presence = known.presence
        own = partition.replicas
        voting = tuple(one for one in own if one in partition.voters)

        def seen(broker: BrokerId) -> Observer:
            lag, last = promotion.lag(broker), presence[broker]
            return Observer(
                broker=broker,
                is_heard=is_heard(broker),
                kept_up_ms=now - last.since_ms if last.is_present else -1,
                lag_count=lag.count,
                lag_ms=lag.ms,
                levels={one: promotion.levels(broker, one) for one in {*own, leader}},
            )

        case = Situation(
            policy=promotion.policy,
            own=own,
            voting=voting,
            promoted=tuple(one for one in partition.voters if one in partition.observers),
            observers=(),
            leader=leader,
            min_insync=promotion.min_insync,
            regions=promotion.regions,
            regions_down=promotion.regions_down,
            bounds=promotion.bounds,
        )
        # An observer that was appointed when no own voter was left stays until one of them votes
        # again.
        are_there = bool(voting) and all(presence[one].is_present for one in voting)
        if not are_there or wanted_count(case) >= len(case.promoted):
            known.healed_since_ms = None
        elif known.healed_since_ms is None:
            known.healed_since_ms = now
        since_ms = now if known.healed_since_ms is None else known.healed_since_ms
        case = replace(case, healed_ms=now - since_ms)
        verdict = decide_promotion(case)
        if verdict.code not in (Code.ENOUGH, Code.HEALING):  # Observers matter.
            observers = tuple(map(seen, partition.observers))
            verdict = decide_promotion(replace(case, observers=observers))
        if verdict.code is Code.HAND_OVER:
            last_ms = known.handed_over_ms
            if last_ms is not None and now - last_ms < HANDOVER_RETRY_MS * self._ratio:
                return replace(verdict, code=Code.HEALING)
        return verdict


def _is_settled(
    verdict: Verdict, partition: Partition, presence: Mapping[BrokerId, Presence]
) -> bool:
    """Whether time alone changes nothing: replicas that lag are looked at periodically anyway."""
    if verdict.code is Code.BEHIND:
        others = (one for one in partition.observers if one not in partition.voters)
        return not any(presence[one].is_present for one in others)
    return verdict.code in (Code.ENOUGH, Code.NO_OBSERVER)


def _can_continue(
    after: Collection[BrokerId],
    before: Collection[BrokerId],
    known: dict[BrokerId, Presence],
) -> bool:
    """Whether a majority of both, as the change needs it, keeps up."""
    return all(
        sum(known[one].is_present for one in voters) > len(voters) // 2
        for voters in (after, before)
    )
