"""Who of those who hold a partition's log votes, while some of them are lost or far behind.

Why:    a voter that is gone leaves a group one failure nearer to its end. Kafka's ISR shrinks, so
        that the last of three replicas serves; so do the voters here, where the topic asks for it.
How:    out:     a voter that acknowledges nothing any more, at once when its broker is silent, and
                 after `replica.lag.time.max.ms` where it is only slow
        back:    one of the topic's own voters that has kept up for a while
        gone:    a voter that no longer belongs to the topic, once the others can do without it
        never:   whoever leads, or a voter without whom too few would be left to commit the change

        What is wanted is asked of the controller and carried out by `moving`, as a move is.
Owns:   since when each member of a group led here keeps up, or does not.
Source: design section 6, 1; decision 0020; Kafka's `replica.lag.time.max.ms`."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from strandline.base.clock import Clock
from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId, GroupId

SILENT_MS = 2_000
"""So long a voter acknowledges nothing, and its broker is not heard, before it is out."""
RETURN_MS = 5_000
"""So long who comes back has to keep up before."""


@dataclass(frozen=True, slots=True)
class Attendance:
    """Whether a member keeps up, and since when."""

    is_there: bool
    since_ms: int


@dataclass(frozen=True, slots=True)
class Choice:
    """Who shall vote. `is_settled`: it stays so until somebody's health changes."""

    voters: tuple[BrokerId, ...]
    is_settled: bool


class Acting:
    """See the module; one per broker."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._attendance: dict[GroupId, dict[BrokerId, Attendance]] = {}

    def forget(self, group: GroupId) -> None:
        """It is not led here any more."""
        self._attendance.pop(group, None)

    def choose(
        self,
        partition: Partition,
        leader: BrokerId,
        *,
        keeps_up: Callable[[BrokerId], bool],
        is_heard: Callable[[BrokerId], bool],
        lag_ms: int,
    ) -> Choice:
        """Who should vote in a group that `leader`, this broker, leads."""
        now = self._clock.monotonic_ms()
        known = self._attendance.setdefault(partition.group, {})
        voters: list[BrokerId] = []
        is_settled = True
        for broker in dict.fromkeys((*partition.replicas, *partition.voters)):
            is_there = broker == leader or keeps_up(broker)
            last = known.get(broker)
            if last is None or last.is_there != is_there:
                last = known[broker] = Attendance(is_there, now)
            votes = broker in partition.voters
            patience_ms = RETURN_MS
            if not is_there:
                patience_ms = lag_ms if is_heard(broker) else SILENT_MS
            is_due = now - last.since_ms >= patience_ms or broker == leader
            if votes != is_there and not is_due:
                is_settled = False
            if is_there if is_due else votes:
                voters.append(broker)
        wanted = [one for one in voters if one in partition.replicas]
        if not _can_go_on(wanted, partition.voters, known):
            return Choice(partition.voters, is_settled)
        return Choice(tuple(wanted), is_settled)


def _can_go_on(
    after: Collection[BrokerId],
    before: Collection[BrokerId],
    known: dict[BrokerId, Attendance],
) -> bool:
    """Whether a majority of both, as the change needs it, keeps up."""
    return all(
        sum(known[one].is_there for one in voters) > len(voters) // 2 for voters in (after, before)
    )
