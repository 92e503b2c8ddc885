"""The remaining logs of a partition: its leader or possible leaders, and the offsets at risk. Pure.

Why:    before an operator gives up a replica whose disk may still exist, the operator must know
        which records are here, which may be elsewhere, and whether a loss is necessary at all.
How:    The voters that may be in force are those granted since the last ones reported stable. The
        answers decide:

            a member leads and may serve, or hears such a leader     LED
            a majority of each set of voters answers                 ELECTABLE
            N - W + 1 of each do: they hold all acknowledged writes  WHOLE
            fewer, and other holders of the log beside them          SHORT
            none, or only logs that prove nothing                    NO_LOG

        The offsets of a SHORT partition fall in three parts. The best log has all records below the
        highest offset that a survivor knows to be committed. From there to its end it has records;
        lost members may have acknowledged these or, under a leader unknown to all survivors, others
        in their place. Beyond its end there are no records here, and no survivor knows how many
        were acknowledged.
            The best log ends last, by epoch, then by length, of the logs that certainly have all
        known committed entries (`has_all_of`): an unknown leader may have committed entries of
        earlier epochs that a log lacks. In a SHORT partition the best log may be an observer's: an
        observer gets the same entries and commits from the leader as a voter.
Source: design section 6, 3; decision 0026."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from strandline.model.ids import NO_BROKER, BrokerId
from strandline.raft.group.configuration import Configuration


class GroupStatus(StrEnum):
    """The possibilities of the members that answer."""

    LED = "led"
    ELECTABLE = "electable"
    WHOLE = "whole"
    SHORT = "short"
    NO_LOG = "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class SurvivingLog:
    """A replica that answers. `committed`: the end of the records that it has and knows to be
    committed; `start` and `end` are of its log. `has_lost`: its log proves nothing."""

    broker: BrokerId
    is_led: bool
    last_epoch: int
    last_index: int
    start: int
    committed: int
    end: int
    has_lost: bool = False
    epoch: int = 0
    """Its epoch: it knows of no commits in a later one."""
    leader: int = NO_BROKER
    """The leader that it knows."""


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
    """How many of the missing voters must come back until no record is at risk, at the least: if
    there is a choice, the right ones."""


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
        standing = GroupStatus.NO_LOG
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
    """A leader without a quorum may not serve, but members may still hear it."""
    stalled = {one.broker for one in logs if one.leader == one.broker and not one.is_led}
    return any(one.is_led and one.leader not in stalled for one in logs)


def _best(logs: Sequence[SurvivingLog], voters: Collection[BrokerId]) -> SurvivingLog | None:
    """The most advanced log that has every entry that one of these knows to be committed; of equal
    ones a voter's."""
    committed = max((one.committed for one in logs), default=0)
    knowing = [one for one in logs if one.committed == committed]
    having = [one for one in logs if any(has_all_of(one, other) for other in knowing)]

    def rank(one: SurvivingLog) -> tuple[int, int, bool, int]:
        return one.last_epoch, one.last_index, one.broker in voters, -one.broker

    return max(having, key=rank, default=None)


def has_all_of(log: SurvivingLog, knowing: SurvivingLog) -> bool:
    """Whether one log certainly has all entries that the other knows to be committed.

    A log that ends in a later epoch has the entries committed up to that epoch. It may lack entries
    that a leader of a still later epoch committed."""
    if log.broker == knowing.broker:
        return True
    if log.last_epoch == knowing.last_epoch:
        return log.end >= knowing.committed
    return log.last_epoch > knowing.last_epoch and log.last_epoch >= knowing.epoch


def _wanted(configuration: Configuration, there: Collection[BrokerId]) -> int:
    """How many more members these need to hold all committed entries."""
    voters = configuration.voters
    lost = sum(1 for one in voters if one not in there)
    return max(lost - configuration.write_quorum(voters) + 1, 0)
