"""Spreads replicas over what may fail together, and leaders over who may lead.

Why:    a partition outlives a region only when no region holds most of its replicas; a cluster is
        as fast as its busiest broker, and a leader is the busiest replica.
How:    one partition after the other, within it one replica after the other, each time the broker
        that sorts first:
            leader    not to be avoided; fewest leaders of this call, then of the cluster;
                      then the same for its region
            follower  not to be avoided; fewest replicas of this partition in its region, zone,
                      rack, host; fewest replicas of this call, then of the cluster
        Ties are broken by the injected random numbers, so that equal brokers do not always pair
        up. The emptiest region first fills the regions evenly, as far as their brokers go.
Owns:   nothing: everything is computed from the arguments; one seed, one answer.
Source: design section 7."""

import random
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from strandline.base.errors import ApiError
from strandline.model.cluster import Broker
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error

Replicas = tuple[BrokerId, ...]
Domain = tuple[str, ...]


@dataclass(slots=True)
class Load:
    """What brokers carry already."""

    replicas: Counter[BrokerId] = field(default_factory=Counter)
    """{broker: replicas it holds}"""
    leaders: Counter[BrokerId] = field(default_factory=Counter)
    """{broker: partitions it is the preferred leader of}"""

    @classmethod
    def of(cls, partitions: Iterable[Replicas]) -> "Load":
        """The load that these partitions make, each with its preferred leader first."""
        load = cls()
        for replicas in partitions:
            load.add(replicas)
        return load

    def add(self, replicas: Replicas) -> None:
        """Count one more partition."""
        self.replicas.update(replicas)
        if replicas:
            self.leaders[replicas[0]] += 1


def place(
    brokers: Sequence[Broker],
    *,
    partitions: int,
    replication_factor: int,
    rng: random.Random,
    load: Load,
    avoid: Collection[BrokerId] = (),
) -> list[Replicas]:
    """Where `partitions` new partitions go, each the preferred leader first. `load` is not changed.

    Brokers in `avoid` (down at the moment) are taken last and lead only when nobody else is there.
    Raises ApiError INVALID_PARTITIONS or INVALID_REPLICATION_FACTOR with what to do about it."""
    if partitions < 1:
        raise ApiError(Error.INVALID_PARTITIONS, f"{partitions} partitions: ask for at least 1")
    if replication_factor < 1:
        raise ApiError(
            Error.INVALID_REPLICATION_FACTOR,
            f"replication factor {replication_factor}: ask for at least 1",
        )
    if replication_factor > len(brokers):
        raise ApiError(
            Error.INVALID_REPLICATION_FACTOR,
            f"replication factor {replication_factor} needs as many brokers, but there are "
            f"{len(brokers)}: start more brokers or ask for at most {len(brokers)}",
        )
    call = _Call(brokers, rng, load, avoid)
    return [call.place_one(replication_factor) for _ in range(partitions)]


class _Call:
    """One call of `place`: the brokers, what the cluster carries, what was placed so far."""

    def __init__(
        self,
        brokers: Sequence[Broker],
        rng: random.Random,
        load: Load,
        avoid: Collection[BrokerId],
    ) -> None:
        self._brokers = sorted(brokers, key=lambda broker: broker.id)
        self._rng = rng
        self._avoid = frozenset(avoid)
        self._domains = {broker.id: domains_of(broker) for broker in self._brokers}
        self._cluster = Load(Counter(load.replicas), Counter(load.leaders))
        self._placed = Load()
        self._cluster_region_leaders = self._leaders_by_region(load)
        self._placed_region_leaders: Counter[Domain] = Counter()

    def place_one(self, replication_factor: int) -> Replicas:
        """Choose the replicas of one partition, and count them."""
        leader = min(self._brokers, key=self._leader_key)
        chosen = [leader.id]
        held = Counter(self._domains[leader.id])
        while len(chosen) < replication_factor:
            free = [broker for broker in self._brokers if broker.id not in chosen]
            follower = min(free, key=lambda broker: self._follower_key(broker, held))
            chosen.append(follower.id)
            held.update(self._domains[follower.id])
        replicas = tuple(chosen)
        self._count(replicas)
        return replicas

    def _leader_key(self, broker: Broker) -> tuple[float, ...]:
        region = self._domains[broker.id][0]
        return (
            broker.id in self._avoid,
            self._placed.leaders[broker.id],
            self._cluster.leaders[broker.id],
            self._placed_region_leaders[region],
            self._cluster_region_leaders[region],
            self._placed.replicas[broker.id],
            self._cluster.replicas[broker.id],
            self._rng.random(),
        )

    def _follower_key(self, broker: Broker, held: Counter[Domain]) -> tuple[float, ...]:
        return (
            broker.id in self._avoid,
            *(held[domain] for domain in self._domains[broker.id]),
            self._placed.replicas[broker.id],
            self._cluster.replicas[broker.id],
            self._rng.random(),
        )

    def _count(self, replicas: Replicas) -> None:
        region = self._domains[replicas[0]][0]
        self._placed.add(replicas)
        self._cluster.add(replicas)
        self._placed_region_leaders[region] += 1
        self._cluster_region_leaders[region] += 1

    def _leaders_by_region(self, load: Load) -> Counter[Domain]:
        counts: Counter[Domain] = Counter()
        for broker in self._brokers:
            counts[self._domains[broker.id][0]] += load.leaders[broker.id]
        return counts


def domains_of(broker: Broker) -> tuple[Domain, ...]:
    """The failure domains of a broker, widest first: (region,), (region, zone), and so on.

    Each carries its path: zone "a" of two regions is two zones. What is not said is one shared
    domain: brokers without labels are told apart by nothing but their load."""
    labels = broker.labels
    path = (labels.region, labels.zone, labels.rack, labels.host)
    return tuple(path[: depth + 1] for depth in range(len(path)))
