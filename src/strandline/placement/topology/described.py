"""A cluster that is described and need not exist: its brokers, and how far its regions are apart.

How:    brokers: [{count: 2, region: east, zone: a}, {id: 7, region: west, labels: {disk: ssd}}]
        round_trips_ms: [{between: [east, west], ms: 30}]
        in JSON or YAML. A broker without an id gets the next free one.
Source: decision 0008."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from strandline.base.errors import OperatorError
from strandline.model.cluster import NAMED_LABELS
from strandline.model.ids import BrokerId
from strandline.placement.policy.text import read_as
from strandline.placement.topology.labels import LabelSource, merge_labels
from strandline.placement.topology.round_trips import RoundTrips
from strandline.placement.topology.universe import BrokerState, Candidate

BROKERS_MAX = 1_000
CLUSTER_CHARACTERS_MAX = 1_000_000
"""A thousand brokers with labels of their own, one a line, are a third of it."""
ROUND_TRIP_MS_MAX = 60_000
_EXAMPLE = "brokers: [{count: 2, region: east}], round_trips_ms: [{between: [east, west], ms: 30}]"


@dataclass(frozen=True, slots=True)
class DescribedCluster:
    """What was read. `round_trips` is None where nothing is said of them."""

    candidates: tuple[Candidate, ...]
    round_trips: RoundTrips | None


class _Broker(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: Annotated[int, msgspec.Meta(ge=0)] | None = None
    count: Annotated[int, msgspec.Meta(ge=1, le=BROKERS_MAX)] = 1
    region: str = ""
    zone: str = ""
    rack: str = ""
    host: str = ""
    upgrade_domain: str = ""
    labels: dict[str, str] = {}
    down: bool = False


class _RoundTrip(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    between: tuple[str, str]
    ms: Annotated[int, msgspec.Meta(ge=0, le=ROUND_TRIP_MS_MAX)]


class _Cluster(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    brokers: Annotated[tuple[_Broker, ...], msgspec.Meta(min_length=1, max_length=BROKERS_MAX)]
    round_trips_ms: tuple[_RoundTrip, ...] = ()


@dataclass(slots=True)
class _Ids:
    taken: set[int] = field(default_factory=set)
    next: int = 1

    def free(self) -> BrokerId:
        while self.next in self.taken:
            self.next += 1
        self.taken.add(self.next)
        return BrokerId(self.next)


def decode_cluster(text: str, *, source: str = "cluster") -> DescribedCluster:
    """Read a description; raises OperatorError with one line."""
    cluster = read_as(
        _Cluster, text, source=source, example=_EXAMPLE, characters_max=CLUSTER_CHARACTERS_MAX
    )
    given = [one.id for one in cluster.brokers if one.id is not None]
    twice = next((one for one in given if given.count(one) > 1), None)
    if twice is not None or any(one.id is not None and one.count > 1 for one in cluster.brokers):
        raise OperatorError(f"{source}: a broker's id is there once, and without a count")
    if sum(one.count for one in cluster.brokers) > BROKERS_MAX:
        raise OperatorError(f"{source}: describe at most {BROKERS_MAX} brokers")
    ids = _Ids(set(given))
    candidates = [
        _candidate(one, ids.free() if one.id is None else BrokerId(one.id), source)
        for one in cluster.brokers
        for _ in range(one.count)
    ]
    regions = {one.labels.region for one in candidates}
    require_regions(
        [name for one in cluster.round_trips_ms for name in one.between],
        regions,
        source=f"{source}: round_trips_ms",
    )
    trips = {one.between: one.ms for one in cluster.round_trips_ms}
    return DescribedCluster(tuple(candidates), RoundTrips(trips) if trips else None)


def require_regions(names: Iterable[str], regions: Iterable[str], *, source: str) -> None:
    """Refuse the name of a region in which no broker is; raises OperatorError, one line."""
    there = sorted({one for one in regions if one})
    unknown = next((one for one in names if one not in there), None)
    if unknown is not None:
        are = f"brokers are in {', '.join(there)}" if there else "no broker says its region"
        raise OperatorError(f"{source}: there is no region {unknown[:80]!r}: {are}")


def _candidate(broker: _Broker, id: BrokerId, source: str) -> Candidate:
    named = {name: getattr(broker, name) for name in NAMED_LABELS}
    labels = merge_labels([LabelSource(source, named), LabelSource(source, broker.labels)]).labels
    state = BrokerState.DOWN if broker.down else BrokerState.ACTIVE
    return Candidate(id=id, labels=labels, state=state)
