"""Whether a cluster is as it was: every replica in sync that was, every leader back.

Source: docs/decisions/0019-drills.md."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from strandline.client.replica_status import Name, PartitionStatus
from strandline.model.ids import BrokerId


@dataclass(frozen=True, slots=True)
class Was:
    """A partition before: its leader, and who was in sync."""

    leader: BrokerId
    in_sync: frozenset[int]


def remember(found: Sequence[PartitionStatus]) -> Mapping[Name, Was]:
    """The partitions whose leaders answer."""
    return {
        (one.topic, one.partition): Was(one.leader, _in_sync(one))
        for one in found
        if one.answer is not None
    }


def missing(before: Mapping[Name, Was], found: Sequence[PartitionStatus]) -> list[str]:
    """What is not as it was, a line each; topics that are gone are passed over."""
    lines = []
    for one in found:
        was = before.get((one.topic, one.partition))
        if was is None:
            continue
        name = f"{one.topic}-{one.partition}"
        behind = sorted(was.in_sync - _in_sync(one))
        if one.answer is None:
            lines.append(f"{name}: no leader answers")
        elif behind:
            lines.append(f"{name}: not in sync: broker {', '.join(map(str, behind))}")
        elif one.leader != was.leader:
            lines.append(f"{name}: led by broker {one.leader}, and not {was.leader}")
    return lines


def _in_sync(one: PartitionStatus) -> frozenset[int]:
    return frozenset(each.broker_id for each in one.replicas if each.is_in_isr)
