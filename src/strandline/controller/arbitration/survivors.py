"""What is left of a partition, from the logs that answer: its leader or possible leaders, and the
offsets at risk. Pure.

Why:    before an operator gives up a replica whose disk may still exist, the operator must know
        what is here, what may be elsewhere, and whether anything must be given up at all.
How:    The voters that may be in force are those granted since the last ones reported stable. The
        answers decide:

            a member leads and may serve, or hears such a leader     LED
            a majority of each set of voters answers                 ELECTABLE
            N - W + 1 of each do: they hold all acknowledged writes  WHOLE
            fewer, and other holders of the log beside them          SHORT
            none, or only logs that prove nothing                    NOBODY

        The offsets of a SHORT partition fall in three parts. Below the highest offset that a
        survivor knows to be committed, all is on the best log. From there to its end there are
        records; lost members may have acknowledged these or, under a leader that no survivor heard
        of, others in their place. Beyond its end nothing is here, and no survivor can tell how much
        was acknowledged.
            The best log ends last, by epoch, then by length, of those that certainly have what is
        known to be committed (`has_all_of`): a leader that it never met may have committed entries
        of earlier epochs that it lacks. In a SHORT partition it may be an observer's: an observer
        has what a leader sent it as voters do, and what it learned of commits is as true.
Source: design section 6, 3; decision 0026."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from strandline.model.ids import NO_BROKER, BrokerId
from strandline.raft.group.configuration import Configuration


class GroupStatus(StrEnum):
    """What the members that answer can do."""

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
    epoch: int = 0
    """That it lives in: where it knows of commits, nobody told it of them in a later one."""
    leader: int = NO_BROKER
    """Who leads, as it knows."""


@dataclass(frozen=True, slots=True)
class Survivors:
    """The result. `best`: the broker with the most advanced log of those known to have all that
    is committed: a voter, or any holder of the log if it is SHORT; None if none is left.
    `committed`: below it nothing is at risk; `end`: where the best log ends."""

    standing: GroupStatus
    best: BrokerId | None
    committed: int
    end: int
    missing: tuple[BrokerId, ...]
    """Voters that do not answer, or whose logs prove nothing."""
    wanted: int
    """So many of the missing have to come back, at least, until nothing is at risk; where there is
    a choice, the right ones."""


def assess(
    possible: Sequence[tuple[BrokerId, ...]],
    logs: Collection[SurvivingLog],
    *,
    needs_all: bool = False,
    floor: int = 0,
) -> Survivors:
    """Judge the logs of the members that answer, observers included, by the voters that may be
    in force.

    `needs_all`: see `GroupVoters`; `floor`: of the first of them, see `Partition`."""
    voters = {one for each in possible for one in each}
    proving = [one for one in logs if not one.has_lost]
    sound = {one.broker: one for one in proving if one.broker in voters}
    first, *others = possible
    configurations = [Configuration(first, min_insync=floor), *map(Configuration, others)]
    if _is_led(logs):
        standing = GroupStatus.LED
    elif not proving:
        standing = GroupStatus.NOBODY
    elif needs_all:
        standing = GroupStatus.SHORT
    elif all(one.wins_election(sound) for one in configurations):
        standing = GroupStatus.ELECTABLE
    elif all(one.holds_commits(sound) for one in configurations):
        standing = GroupStatus.WHOLE
    else:
        standing = GroupStatus.SHORT
    counted = proving if standing is GroupStatus.SHORT else list(sound.values())
    best = _best(counted, voters)
    end = 0 if best is None else best.end
    committed = max((one.committed for one in counted), default=0)
    return Survivors(
        standing=standing,
        best=None if best is None else best.broker,
        committed=min(committed, end),
        end=end,
        missing=tuple(sorted(voters - sound.keys())),
        wanted=(
            len(voters - sound.keys())
            if needs_all
            else max(_wanted(one, sound) for one in configurations)
        ),
    )


def _is_led(logs: Collection[SurvivingLog]) -> bool:
    """Who leads, and may not serve, has no quorum that could vote: others hear it all the same."""
    stalled = {one.broker for one in logs if one.leader == one.broker and not one.is_led}
    return any(one.is_led and one.leader not in stalled for one in logs)


def _best(logs: Sequence[SurvivingLog], voters: Collection[BrokerId]) -> SurvivingLog | None:
    """The most advanced log that has everything that one of these knows to be committed: of equal
    ones a voter's."""
    committed = max((one.committed for one in logs), default=0)
    knowing = [one for one in logs if one.committed == committed]
    having = [one for one in logs if any(has_all_of(one, other) for other in knowing)]

    def rank(one: SurvivingLog) -> tuple[int, int, bool, int]:
        return one.last_epoch, one.last_index, one.broker in voters, -one.broker

    return max(having, key=rank, default=None)


def has_all_of(log: SurvivingLog, knowing: SurvivingLog) -> bool:
    """Whether one log certainly has all that the other knows to be committed.

    A log that ends in a later epoch has what was committed before that, or in it; not what a leader
    of a still later one committed, which it never met."""
    if log.broker == knowing.broker:
        return True
    if log.last_epoch == knowing.last_epoch:
        return log.end >= knowing.committed
    return log.last_epoch > knowing.last_epoch and log.last_epoch >= knowing.epoch


def _wanted(configuration: Configuration, there: Collection[BrokerId]) -> int:
    """How many more have to be there before these hold all that was committed."""
    voters = configuration.voters
    lost = sum(1 for one in voters if one not in there)
    return max(lost - configuration.write_quorum(voters) + 1, 0)
