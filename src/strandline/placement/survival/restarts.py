"""In which order brokers may be restarted, and which of them now, so that nothing stops. Pure.

Why:    an upgrade takes every broker down once; which of them may be down together follows from the
        places of replicas, and no operator should have to work that out by hand.
How:    Units (upgrade domains, or single brokers) are put into steps, each into the first in which
        every group keeps a write quorum; the unit of the controller's leader goes last. A domain
        that some group could not do without is taken broker by broker; a broker that some group
        cannot do without is not planned, but reported with that group.
Owns:   nothing.
Source: design section 6 (W of N); docs/decisions/0011-the-life-of-a-broker.md."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from strandline.model.ids import BrokerId

Brokers = frozenset[BrokerId]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumGroup:
    """Replicas that commit together: a partition, or several alike, or the controller.

    `ready`: those of the voters that are up and in sync; `quorum`: how many it takes. `away`:
    voters by placement that have left the voters, because they are down or behind.
    `has_leader`: whether it has one; without it nothing is known to be in sync."""

    name: str
    voters: Brokers
    quorum: int
    ready: Brokers
    count: int = 1
    away: Brokers = frozenset()
    has_leader: bool = True


@dataclass(frozen=True, slots=True)
class Unit:
    """Brokers that are restarted together."""

    name: str
    brokers: Brokers


@dataclass(frozen=True, slots=True)
class RestartPlan:
    """`steps`: one after the other, each begun when all is up and in sync again. `never`: what
    cannot be restarted without stopping a group."""

    steps: tuple[tuple[Unit, ...], ...]
    never: tuple[tuple[Unit, QuorumGroup], ...]
    split: tuple[Unit, ...]
    """Domains that are taken broker by broker."""


def plan_restarts(
    units: Sequence[Unit], groups: Sequence[QuorumGroup], *, last: BrokerId | None = None
) -> RestartPlan:
    """The fewest steps that the first fit gives, in the order of the units. `last`: the broker
    whose unit goes last."""
    whole, split, never = _divided(units, groups)
    whole.sort(key=lambda one: last in one.brokers)
    steps: list[list[Unit]] = []
    for unit in whole:
        is_last = last in unit.brokers
        for step in () if is_last else steps:
            together = unit.brokers.union(*(one.brokers for one in step))
            if stopped_by(together, groups) is None:
                step.append(unit)
                break
        else:
            steps.append([unit])
    return RestartPlan(tuple(map(tuple, steps)), tuple(never), tuple(split))


def stopped_by(brokers: Brokers, groups: Sequence[QuorumGroup]) -> QuorumGroup | None:
    """A group that could not commit without these brokers, were all others up."""
    return next((one for one in groups if len(one.voters - brokers) < one.quorum), None)


def hurt_by(
    brokers: Brokers,
    groups: Iterable[QuorumGroup],
    *,
    up: Brokers,
    spared: Brokers = frozenset(),
    counts_stopped: bool = True,
) -> Iterator[QuorumGroup]:
    """The groups because of which these brokers may not go down now, together: each has one of
    them, and without them too few that are in sync and may not go down at any time
    (`spared`).

    `up`: brokers that are heard. `counts_stopped`: whether a group counts that has too few of
    those anyhow. It does for an operator who restarts brokers one after the other: that group
    must be repaired first. It does not for one who must take a broker out of service now: the
    group loses nothing."""
    for one in groups:
        if not one.voters & brokers or len(one.ready - spared - brokers) >= one.quorum:
            continue
        if counts_stopped or len(one.voters & up - spared) >= one.quorum:
            yield one


def need_of(group: QuorumGroup, up: Brokers, spared: Brokers = frozenset()) -> str:
    """What a group needs, and what it lacks: `needs 2 of brokers 1, 3, 5; down: 5`. `up`:
    brokers that are heard; `spared`: those that may go down at any time."""
    gone = group.voters & spared
    others = group.voters - spared
    found = f"needs {group.quorum} of brokers {', '.join(map(str, sorted(group.voters)))}"
    behind = others & up - group.ready if group.has_leader else frozenset()
    for which, what in (
        (gone, "in maintenance"),
        ((others | group.away) - up, "down"),
        (behind | group.away & up, "behind"),
    ):
        if which:
            found += f"; {what}: {', '.join(map(str, sorted(which)))}"
    return found if group.has_leader else f"{found}; it has no leader"


def _divided(
    units: Sequence[Unit], groups: Sequence[QuorumGroup]
) -> tuple[list[Unit], list[Unit], list[tuple[Unit, QuorumGroup]]]:
    """(what may go as a whole, domains that may not, brokers that may not either)"""
    whole: list[Unit] = []
    split: list[Unit] = []
    never: list[tuple[Unit, QuorumGroup]] = []
    for unit in units:
        parts = [unit]
        if len(unit.brokers) > 1 and stopped_by(unit.brokers, groups) is not None:
            split.append(unit)
            parts = [Unit(f"broker {one}", frozenset((one,))) for one in sorted(unit.brokers)]
        for part in parts:
            group = stopped_by(part.brokers, groups)
            if group is None:
                whole.append(part)
            else:
                never.append((part, group))
    return whole, split, never
