"""Which observer becomes a voter while voters are lost, and when it stops voting. Pure.

Why:    If too few voters are left for acks=all, an observer with a complete copy may vote until
        they are back. An observer with less must not vote, and none longer than needed.
How:    a policy says how many observers should vote, from the voters of the placement (V), those of
        them that vote (H), and min.insync.replicas (m, V at most):

            under-min-isr       m - H
            under-replicated    V - H
            leader-is-observer  m - H while an observer leads, as after a declared loss
            region-lost         the voters of each region that is down and has no voter left

        Under every policy a promoted observer stays while m - H are needed. For a lost region it
        stays until the region's voters are back, not only the region.
            If fewer observers vote than that, the leader promotes the nearest one that has caught
        up. If more have voted for `Bounds.demote_ms` with all of H there, the last one in the same
        order leaves; a leader first hands over, and leaves last. One changes at a time.
            "Nearest": to a missing voter, so that copies stay where the policy wants them; then to
        the leader; then in placement's order. "Caught up": it lacks few records of the leader's,
        none of them for long, and keeps up.
            Safety does not depend on this: each step is an ordinary change of voters, granted by
        the controller and committed by joint consensus (`broker.groups.moving`).
Owns:   nothing.
Source: decision 0025; Confluent's `observerPromotionPolicy`; design section 6."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from strandline.model.ids import BrokerId
from strandline.placement.policy.document import Promotion

HANDOVER_RETRY_MS = 30_000
"""A leader that failed to hand over tries again after this time."""


class Code(StrEnum):
    """The action, or the reason for none."""

    PROMOTE = "promote"
    DEMOTE = "demote"
    HAND_OVER = "hand-over"
    """The observer to be demoted leads: another replica must lead first."""
    ENOUGH = "enough"
    """The right number of observers votes."""
    NO_OBSERVER = "nobody"
    """More should vote, and the leader hears no other observer."""
    BEHIND = "behind"
    """More should vote, and no heard observer has caught up."""
    HEALING = "healing"
    """Fewer should vote, for not long enough yet."""


@dataclass(frozen=True, slots=True)
class Observer:
    """An observer of the placement, as the leader knows it."""

    broker: BrokerId
    is_heard: bool
    kept_up_ms: int
    """For how long it has kept up; -1 if it does not."""
    lag_count: int
    """How many of the leader's records it has not acknowledged as flushed; -1 if unknown."""
    lag_ms: int
    """Since when it lacks records; -1 if unknown."""
    levels: Mapping[BrokerId, int]
    """{broker: how many levels of the topology they have in common}"""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits that an observer must keep; topic keys (`config.topic`) with these defaults."""

    lag_count_max: int = 10_000
    """An observer that lacks more records is not promoted: writes would wait for them."""
    lag_ms_max: int = 2_000
    """An observer that lacks records for longer is not promoted."""
    ready_ms: int = 500
    """How long it must have kept up."""
    demote_ms: int = 10_000
    """How long more observers vote than needed before one of them leaves the voters."""

    def has_caught_up(self, one: Observer) -> bool:
        """Whether no write would wait for its records."""
        return (
            one.kept_up_ms >= self.ready_ms
            and 0 <= one.lag_count <= self.lag_count_max
            and 0 <= one.lag_ms <= self.lag_ms_max
        )


@dataclass(frozen=True, slots=True)
class Situation:
    """A partition between two changes of its voters. `own`: the voters that placement asks for.

    `voting`: those of `own` that vote; `promoted`: the observers that do; `observers`: all, in the
    order of placement; `regions`: {voter of its own: its region}, where that is known;
    `healed_ms`: since when fewer observers should vote than do, with all of `voting` there."""

    policy: Promotion
    own: tuple[BrokerId, ...]
    voting: tuple[BrokerId, ...]
    promoted: tuple[BrokerId, ...]
    observers: tuple[Observer, ...]
    leader: BrokerId
    min_insync: int
    regions: Mapping[BrokerId, str]
    regions_down: frozenset[str] = frozenset()
    healed_ms: int = 0
    bounds: Bounds = Bounds()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The action, its observer, and the reason in words."""

    code: Code
    text: str
    broker: BrokerId | None = None


def wanted_count(case: Situation) -> int:
    """How many observers should vote."""
    usual, present, promoted = len(case.own), len(case.voting), len(case.promoted)
    least = min(case.min_insync, usual)
    match case.policy:
        case "under-min-isr":
            wanted = least - present
        case "under-replicated":
            wanted = usual - present
        case "leader-is-observer":
            needed = least - present
            wanted = needed if case.leader in case.promoted else min(promoted, needed)
        case "region-lost":
            lost = len(_lost_with_their_region(case))
            wanted = max(lost, min(promoted, usual - present))
        case _:
            wanted = 0
    return max(0, wanted)


def decide_promotion(case: Situation) -> Verdict:
    """The next step, one observer at most."""
    wanted, present = wanted_count(case), len(case.promoted)
    numbers = (
        f"{case.policy or 'no policy'}: {len(case.voting)} of {len(case.own)} voters, "
        f"min.insync.replicas {case.min_insync}, {present} of {wanted} observers vote"
    )
    if present < wanted:
        return _promote(case, numbers)
    if present > wanted:
        return _demote(case, numbers)
    return Verdict(Code.ENOUGH, numbers)


def _promote(case: Situation, numbers: str) -> Verdict:
    others = [one for one in case.observers if one.broker not in case.promoted]
    heard = [one for one in others if one.is_heard]
    ready = [one for one in heard if case.bounds.has_caught_up(one)]
    if not heard:
        return Verdict(Code.NO_OBSERVER, f"{numbers}; no other observer is heard")
    if not ready:
        lags = ", ".join(
            f"broker {one.broker} lacks {_count(one.lag_count)}, for {_time(one.lag_ms)}"
            for one in heard
        )
        bounds = case.bounds
        return Verdict(
            Code.BEHIND,
            f"{numbers}; {lags}; at most {bounds.lag_count_max} for {bounds.lag_ms_max} ms may be "
            "lacking",
        )
    nearest = _by_nearness(case, ready)[0]
    return Verdict(
        Code.PROMOTE,
        f"{numbers}; broker {nearest.broker} lacks {_count(nearest.lag_count)}, for "
        f"{_time(nearest.lag_ms)}",
        nearest.broker,
    )


def _demote(case: Situation, numbers: str) -> Verdict:
    left_ms = case.bounds.demote_ms - case.healed_ms
    if left_ms > 0:
        return Verdict(Code.HEALING, f"{numbers}; one leaves in {left_ms} ms, if that stays so")
    voting = [one for one in case.observers if one.broker in case.promoted]
    ordered = [one.broker for one in _by_nearness(case, voting)]
    following = [one for one in ordered if one != case.leader]
    if following:
        return Verdict(Code.DEMOTE, numbers, following[-1])
    return Verdict(Code.HAND_OVER, numbers, case.leader)


def _by_nearness(case: Situation, observers: list[Observer]) -> list[Observer]:
    missing = [one for one in case.own if one not in case.voting]

    def distance(observer: Observer) -> tuple[int, int]:
        levels = observer.levels
        stands_in = max((levels.get(one, 0) for one in missing), default=0)
        return -stands_in, -levels.get(case.leader, 0)

    return sorted(observers, key=distance)  # Stable: equal ones keep placement's order.


def _lost_with_their_region(case: Situation) -> list[BrokerId]:
    alive = {case.regions.get(one, "") for one in case.voting}
    down = case.regions_down - alive - {""}
    return [one for one in case.own if case.regions.get(one, "") in down]


def _count(number: int) -> str:
    return "an unknown number of records" if number < 0 else f"{number} records"


def _time(ms: int) -> str:
    return "an unknown time" if ms < 0 else f"{ms} ms"
