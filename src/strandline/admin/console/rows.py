"""Rows of the console's tables.

How:    from the same facts as the JSON API. A state is a word, never a colour alone; a question
        mark is a value that this broker does not know.
Owns:   nothing.
Source: decision 0036."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from strandline.admin.facts import BrokerFacts, PartitionFacts
from strandline.client.operations.replica_status import lag_of
from strandline.model.cluster import Partition, Topic
from strandline.protocol.messages.describe_replica_status import ReplicaStatus

UNKNOWN = "?"
_UNITS_MS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    """A replica, in words. `where`: the region and zone of its broker; `is_ailing`: whether it
    needs attention."""

    broker: int
    where: str
    role: str
    is_heard: bool
    in_sync: str
    caught_up: str
    lag_records: str
    behind_for: str
    is_ailing: bool


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """A partition. `leader`: its broker; `notes`: what else there is to say of it."""

    partition: int
    leader: int | None
    notes: Sequence[str]
    replicas: Sequence[ReplicaRow]


def places_of(brokers: Sequence[BrokerFacts]) -> dict[int, str]:
    """{broker: its region and zone}"""
    return {
        one.id: "/".join(place for place in (one.region, one.zone) if place) or "-"
        for one in brokers
    }


def partition_row(one: PartitionFacts, places: Mapping[int, str]) -> PartitionRow:
    """The row of a partition, and of each of its replicas: voters first, then observers, then those
    that are to come or to go."""
    known: dict[int, tuple[ReplicaStatus, int | None]] = {}
    if one.status is not None:
        known = {each.broker_id: (each, lag_of(one.status, each)) for each in one.status.replicas}
    members = dict.fromkeys(
        (*one.voters, *one.observers, *one.target_voters, *one.target_observers, *one.voting,
         *known)
    )  # fmt: skip
    return PartitionRow(
        partition=one.partition,
        leader=one.leader,
        notes=_notes(one),
        replicas=[
            _replica(one, broker, places.get(broker, UNKNOWN), *known.get(broker, (None, None)))
            for broker in members
        ],
    )


def chosen(topic: Topic, ailing: Sequence[Partition], count_max: int) -> list[Partition]:
    """At most `count_max` partitions, unhealthy ones first."""
    first = {one.index for one in ailing}
    others = (one for one in topic.partitions if one.index not in first)
    return [*ailing, *others][:count_max]


def lasted(duration_ms: int) -> str:
    """For how long, in its largest unit: 12 s, 3 min, 5 h."""
    for unit, unit_ms in _UNITS_MS:
        if duration_ms >= unit_ms:
            return f"{duration_ms // unit_ms} {unit}"
    return "0 s"


def moment(wall_ms: int) -> str:
    """When a page was rendered, to the second."""
    return f"{datetime.datetime.fromtimestamp(wall_ms / 1_000, datetime.UTC):%Y-%m-%d %H:%M:%S} UTC"


def _replica(
    one: PartitionFacts, broker: int, where: str, status: ReplicaStatus | None, lag: int | None
) -> ReplicaRow:
    behind_ms = -1 if status is None else status.last_caught_up_lag_ms
    lags = status is not None and not status.is_caught_up
    votes, is_placed_voter = broker in one.voting, broker in one.voters
    return ReplicaRow(
        broker=broker,
        where=where,
        role=_role(one, broker),
        is_heard=broker not in one.offline,
        in_sync=UNKNOWN if status is None else _yes(is_so=status.is_in_isr),
        caught_up=UNKNOWN if status is None else _yes(is_so=status.is_caught_up),
        lag_records=UNKNOWN if lag is None else str(lag),
        behind_for=UNKNOWN if behind_ms < 0 else lasted(behind_ms),
        is_ailing=lags or broker in one.offline or one.leader is None or votes != is_placed_voter,
    )


def _role(one: PartitionFacts, broker: int) -> str:
    votes = broker in one.voting
    if broker in one.observers:
        return "observer, stands in for a voter" if votes else "observer"
    if broker in one.voters:
        return "voter" if votes else "voter, does not vote now"
    if broker in one.target_voters:
        return "voter to be"
    if broker in one.target_observers:
        return "observer to be"
    return "votes, is to leave" if votes else "is to leave"


def _notes(one: PartitionFacts) -> list[str]:
    found = []
    if one.leader is None:
        found.append("no leader known here")
    if one.is_fenced:
        found.append("no leader appointed yet")
    if one.target_voters:
        found.append("replicas are moving")
    if one.losses_declared:
        found.append(f"losses declared: {one.losses_declared}")
    if one.has_failed_here:
        found.append("this broker's replica has failed: see its log")
    return found


def _yes(*, is_so: bool) -> str:
    return "yes" if is_so else "no"
