"""Reports partitions that continue with fewer voters or with observers, refuse acks=all, have no
leader, are late in tiered storage, or refuse writes for that. Pure.

Why:    A partition whose voters left, or whose observers vote, continues, but may not survive the
        next loss: an operator must know before. A partition without a leader may need an operator.
How:    one alarm for each class, however many partitions it has: there may be thousands.

            the class has some, for `BEGUN_MS`  --> begun, with their count and the first names
            the class is empty, for `OVER_MS`   --> over

        Shorter changes report nothing, so a restart raises no alarm. The next controller reports
        the present alarms again: the one before it may have failed to.
Owns:   since when each class has some partitions or none, and the reported alarms; on the active
        controller.
Source: design section 8; decisions 0020, 0025 and 0029."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypedDict

from strandline.controller.outages.alarms import Alarm
from strandline.controller.outages.happenings import MINUTE_MS, Happening, Kind
from strandline.model.cluster import Partition
from strandline.model.ids import GroupId

BEGUN_MS = 10_000
OVER_MS = 30_000
NAMED_MAX = 3
HOUR_MS = 60 * MINUTE_MS
SUBJECT = "partitions"

CLASSES = (
    Kind.FEWER_VOTERS,
    Kind.OBSERVERS_VOTE,
    Kind.LOW_QUORUM,
    Kind.NO_LEADER,
    Kind.TIERED_LAG,
    Kind.TIERED_FULL,
)
_TEXTS = {
    Kind.FEWER_VOTERS: ("fewer voters than placement requires", "all voters are back"),
    Kind.OBSERVERS_VOTE: ("observers stand in for voters", "no observer stands in"),
    Kind.LOW_QUORUM: (
        "acks=all writes are rejected: fewer voters are in sync than min.insync.replicas requires",
        "acks=all writes are accepted everywhere",
    ),
    Kind.NO_LEADER: ("no reachable leader", "all have a leader"),
    Kind.TIERED_LAG: (
        "closed segments are missing from a bucket for longer than remote.copy.lag.max.ms, or are "
        "more than remote.copy.lag.max.bytes",
        "all buckets have caught up",
    ),
    Kind.TIERED_FULL: (
        "writes are refused: closed segments that wait for a bucket are more than "
        "remote.copy.lag.max.bytes",
        "writes are taken again: buckets have caught up",
    ),
}


@dataclass(slots=True)
class _Class:
    """A class of partitions. `since_ms`: when it last changed between empty and not empty;
    `begun_ms`: when its reported alarm began; None without such an alarm."""

    has_some: bool = False
    since_ms: int = 0
    begun_ms: int | None = None
    names: list[str] = field(default_factory=list)
    more: str = ""
    """What else to say of these partitions."""


class TieredLags(TypedDict):
    """What `VotingAlarms.step` takes of tiered storage."""

    lagging: frozenset[GroupId]
    full: frozenset[GroupId]
    full_in_ms: int | None


class VotingAlarms:
    """See the module."""

    def __init__(self) -> None:
        self._classes = {kind: _Class() for kind in CLASSES}

    @property
    def counts(self) -> Mapping[Kind, int]:
        """The number of partitions in each class now."""
        return {kind: len(one.names) for kind, one in self._classes.items()}

    @property
    def reported(self) -> list[Kind]:
        """The classes with an alarm that was reported and is not over."""
        return [kind for kind, one in self._classes.items() if one.begun_ms is not None]

    @property
    def happenings(self) -> list[Happening]:
        """The reported alarms that are not over, with the present partitions of the class."""
        return [
            Happening(kind, SUBJECT, _text(kind, one), one.begun_ms)
            for kind, one in self._classes.items()
            if one.begun_ms is not None
        ]

    def step(
        self,
        now_ms: int,
        groups: Mapping[GroupId, Partition],
        *,
        refusing: Iterable[GroupId],
        leaderless: Iterable[GroupId],
        lagging: Iterable[GroupId] = (),
        full: Iterable[GroupId] = (),
        full_in_ms: int | None = None,
    ) -> list[Alarm]:
        """The alarms that begin or end now. `refusing`: the groups whose leaders refuse acks=all;
        `leaderless`: those without a reachable leader; `lagging`: those whose closed segments are
        missing from a bucket for too long; `full`: those that refuse writes for that; `full_in_ms`:
        when the first disk or limit is full at the present rate, None if that does not come
        nearer."""
        for one in self._classes.values():
            one.names.clear()
        for partition in groups.values():
            if partition.acting:
                self._sort(partition)
        reported = (
            (Kind.LOW_QUORUM, refusing),
            (Kind.NO_LEADER, leaderless),
            (Kind.TIERED_LAG, lagging),
            (Kind.TIERED_FULL, full),
        )
        self._classes[Kind.TIERED_LAG].more = _filling(full_in_ms)
        for kind, some in reported:
            self._classes[kind].names += sorted(groups[one].name for one in some if one in groups)
        found = []
        for kind, one in self._classes.items():
            if bool(one.names) != one.has_some:
                one.has_some, one.since_ms = bool(one.names), now_ms
            alarm = _alarm_of(kind, one, now_ms)
            if alarm is not None:
                found.append(alarm)
        return found

    def _sort(self, partition: Partition) -> None:
        own = sum(1 for one in partition.replicas if one in partition.acting)
        if len(partition.acting) < len(partition.replicas):
            self._classes[Kind.FEWER_VOTERS].names.append(partition.name)
        if own < len(partition.acting):
            self._classes[Kind.OBSERVERS_VOTE].names.append(partition.name)


def meaning(kind: Kind) -> str:
    """The text that describes the partitions of a class."""
    return _TEXTS[kind][0]


def _alarm_of(kind: Kind, one: _Class, now_ms: int) -> Alarm | None:
    lasting_ms = now_ms - one.since_ms
    if one.has_some and one.begun_ms is None and lasting_ms >= BEGUN_MS:
        one.begun_ms = one.since_ms
        return Alarm(kind, SUBJECT, False, _text(kind, one))
    if not one.has_some and one.begun_ms is not None and lasting_ms >= OVER_MS:
        minutes = (one.since_ms - one.begun_ms) // MINUTE_MS
        one.begun_ms = None
        _, over = _TEXTS[kind]
        return Alarm(kind, SUBJECT, True, over + (f", after {minutes} min" if minutes else ""))
    return None


def _text(kind: Kind, one: _Class) -> str:
    (begun, over), names = _TEXTS[kind], one.names
    if not names:
        return f"{over} since a moment ago"
    return f"{begun}: {_counted(names)}, {_named(names)}{one.more}"


def _filling(full_in_ms: int | None) -> str:
    """When a disk or a limit is full, for the end of a sentence."""
    if full_in_ms is None:
        return ""
    when = (
        f"{full_in_ms // HOUR_MS} h"
        if full_in_ms >= 2 * HOUR_MS
        else (f"{full_in_ms // MINUTE_MS} min")
    )
    return f"; at the present rate the first disk or limit is full in {when}"


def _counted(names: list[str]) -> str:
    return f"{len(names)} partition{'s' * (len(names) != 1)}"


def _named(names: list[str]) -> str:
    more = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
