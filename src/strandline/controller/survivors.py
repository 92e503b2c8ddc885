"""What is left of a partition, from the logs of those who answer: who leads, who could, and which
offsets are at risk. Pure.

Why:    before anybody gives up what may still be on a disk somewhere, it has to be known exactly
        what is here, what may be elsewhere, and whether anything has to be given up at all.
How:    the voters that may be in force are those that the controller has granted since the last
        that were reported stable. Who answers decides:

            somebody leads, or hears a leader                        LED
            a majority of each of them answers                       ELECTABLE
            N - W + 1 of each do: they hold all acknowledged writes  WHOLE
            fewer                                                    SHORT
            nobody                                                   NOBODY

        Offsets of a SHORT partition fall in three: below the highest one that a survivor knows to
        be committed all is on the best log, by the rules of elections. From there to the end of the
        best log there are records, and who is lost may have acknowledged these, or, under a leader
        that no survivor heard of, others in their place. From its end on nothing is here, and how
        much was acknowledged nobody who is left can tell.
Source: design section 6, 3; decision 0026."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from strandline.model.ids import BrokerId
from strandline.raft.configuration import Configuration


class Standing(StrEnum):
    """What those who answer can do."""

    LED = "led"
    ELECTABLE = "electable"
    WHOLE = "whole"
    SHORT = "short"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class SurvivingLog:
    """A replica that answers. `committed`: below this offset it knows all to be committed, and has
    it; `start` and `end` are of its log. `has_lost`: its log proves nothing."""

    broker: BrokerId
    is_led: bool
    last_epoch: int
    last_index: int
    start: int
    committed: int
    end: int
    has_lost: bool = False


@dataclass(frozen=True, slots=True)
class Survivors:
    """What was found. `best`: the voter with the most advanced log; None where none is left.

    `committed`: below it nothing is at risk; `end`: where the best log ends."""

    standing: Standing
    best: BrokerId | None
    committed: int
    end: int
    missing: tuple[BrokerId, ...]
    """Voters that do not answer, or whose logs prove nothing."""
    wanted: int
    """So many of the missing have to come back, at least, until nothing is at risk; where there is
    a choice, the right ones."""


def assess(possible: Sequence[tuple[BrokerId, ...]], logs: Collection[SurvivingLog]) -> Survivors:
    """Judge the logs of those who answer, observers among them, by the voters that may be in
    force."""
    voters = {one for each in possible for one in each}
    sound = {one.broker: one for one in logs if one.broker in voters and not one.has_lost}
    configurations = [Configuration(each) for each in possible]
    best = max(
        sound.values(), key=lambda one: (one.last_epoch, one.last_index, -one.broker), default=None
    )
    if any(one.is_led for one in logs):
        standing = Standing.LED
    elif best is None:
        standing = Standing.NOBODY
    elif all(one.wins_election(sound) for one in configurations):
        standing = Standing.ELECTABLE
    elif all(one.holds_commits(sound) for one in configurations):
        standing = Standing.WHOLE
    else:
        standing = Standing.SHORT
    end = 0 if best is None else best.end
    return Survivors(
        standing=standing,
        best=None if best is None else best.broker,
        committed=min(max((one.committed for one in sound.values()), default=0), end),
        end=end,
        missing=tuple(sorted(voters - sound.keys())),
        wanted=max(_wanted(one, sound) for one in configurations),
    )


def _wanted(configuration: Configuration, there: Collection[BrokerId]) -> int:
    """How many more have to be there before these hold all that was committed."""
    voters = configuration.voters
    lost = sum(1 for one in voters if one not in there)
    return max(lost - configuration.write_quorum(voters) + 1, 0)
