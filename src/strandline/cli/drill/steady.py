"""Whether a cluster is as before: the same replicas in sync, every leader back.

How:    a leader counts as back if it led before or is preferred: a drill may start while some
        preferred leaders do not lead. If leaders do not return automatically, any leader counts.
Source: docs/decisions/0019-drills.md."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from strandline.client.operations.leadership import LeaderWaiting
from strandline.client.operations.replica_status import Name, PartitionStatus
from strandline.model.ids import BrokerId

STAYS = ("off", "writers", "maintenance")
"""Reasons, of `LEADER_WAITS`, for which a partition keeps a non-preferred leader."""
AskWaits = Callable[[BrokerId], Sequence[LeaderWaiting] | None]
"""What a broker leads and another should; None where it does not say."""


@dataclass(frozen=True, slots=True)
class Was:
    """A partition before the drill: its leader and in-sync replicas."""

    leader: BrokerId
    in_sync: frozenset[int]


def remember(found: Sequence[PartitionStatus]) -> Mapping[Name, Was]:
    """The partitions whose leaders answer."""
    return {
        (one.topic, one.partition): Was(one.leader, _in_sync(one))
        for one in found
        if one.answer is not None
    }


def missing(
    before: Mapping[Name, Was], found: Sequence[PartitionStatus], ask: AskWaits
) -> list[str]:
    """Differences, one line each; deleted topics are skipped."""
    lines = []
    asked: dict[BrokerId, Mapping[Name, LeaderWaiting] | None] = {}
    for one in found:
        place = one.topic, one.partition
        was = before.get(place)
        if was is None:
            continue
        name = f"{one.topic}-{one.partition}"
        behind = sorted(was.in_sync - _in_sync(one))
        if one.answer is None:
            lines.append(f"{name}: no leader answers")
        elif behind:
            lines.append(f"{name}: not in sync: broker {', '.join(map(str, behind))}")
        elif one.leader != was.leader:
            if one.leader not in asked:
                asked[one.leader] = _by_name(ask(one.leader))
            waits = asked[one.leader]
            wait = None if waits is None else waits.get(place)
            if waits is None or (wait is not None and wait.code not in STAYS):
                why = "" if wait is None else f": {wait.text}"
                lines.append(f"{name}: led by broker {one.leader} instead of {was.leader}{why}")
    return lines


def _by_name(waits: Sequence[LeaderWaiting] | None) -> Mapping[Name, LeaderWaiting] | None:
    return None if waits is None else {(one.topic, one.partition): one for one in waits}


def _in_sync(one: PartitionStatus) -> frozenset[int]:
    return frozenset(each.broker_id for each in one.replicas if each.is_in_isr)
