"""Spreads replicas over failure domains, and leaders over the brokers that may lead.

Why:    a partition outlives a region only if no region holds most of its replicas; a cluster is as
        fast as its busiest broker, and a leader is the busiest replica.
How:    one partition after the other, within it one replica after the other, each time the broker
        that sorts first:
            leader    not to be avoided; room on its disk; fewest leaders of this call, then of
                      the cluster; then the same for its region
            follower  not to be avoided; room on its disk; fewest replicas of this partition in
                      its region, zone, rack, host; fewest replicas of this call, then of the
                      cluster
        The random numbers passed in break ties, so that equal brokers do not always pair up. The
        emptiest region first fills the regions evenly, as far as their brokers go.
Owns:   nothing: everything is computed from the arguments; one seed, one answer.
Source: design section 7."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from strandline.base.errors import ApiError
from strandline.base.rng import Rng
from strandline.model.cluster import Broker
from strandline.model.ids import BrokerId
from strandline.placement.topology.universe import LEVELS, domain_of
from strandline.protocol.errors import Error

Replicas = tuple[BrokerId, ...]
Domain = tuple[str, ...]


@dataclass(slots=True)
class Load:
    """The present load of brokers."""

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
    rng: Rng,
    load: Load,
    avoid: Collection[BrokerId] = (),
    nearly_full: Collection[BrokerId] = (),
) -> list[Replicas]:
    """Where `partitions` new partitions go, each the preferred leader first. `load` is not
    changed.

    Brokers in `avoid` (down at the moment) are taken last and lead only if there is no other;
    before them those that are `nearly_full`, whose disks are nearly full. Raises ApiError
    INVALID_PARTITIONS or INVALID_REPLICATION_FACTOR with what to do about it."""
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
    call = _Call(brokers, rng, load, avoid=avoid, nearly_full=nearly_full)
    return [call.place_one(replication_factor) for _ in range(partitions)]


class _Candidate:
    """A broker, with its load and its region's.

    Plain numbers: keys are compared a dozen times for each of thousands of partitions."""

    __slots__ = (
        "domains",
        "id",
        "leaders",
        "placed_leaders",
        "placed_replicas",
        "rank",
        "region",
        "replicas",
    )

    def __init__(self, broker: Broker, *, load: Load, rank: int, domains: tuple[int, ...]) -> None:
        self.id = broker.id
        self.rank = rank
        """Brokers with a lower one come first: 1 for a disk that is nearly full, 2 for a broker to
        avoid."""
        self.domains = domains
        """Numbers of its failure domains, widest first."""
        self.region = domains[0]
        self.leaders = load.leaders[broker.id]
        self.replicas = load.replicas[broker.id]
        self.placed_leaders = 0
        self.placed_replicas = 0


class _Call:
    """One call of `place`: the brokers, the cluster's load, the placements so far."""

    def __init__(
        self,
        brokers: Sequence[Broker],
        rng: Rng,
        load: Load,
        *,
        avoid: Collection[BrokerId],
        nearly_full: Collection[BrokerId],
    ) -> None:
        self._draw = rng.random
        numbers: dict[Domain, int] = {}
        self._brokers: list[_Candidate] = []
        for broker in sorted(brokers, key=lambda broker: broker.id):
            domains = domains_of(broker)
            known = tuple(numbers.setdefault(domain, len(numbers)) for domain in domains)
            rank = 2 * (broker.id in avoid) + (broker.id in nearly_full)
            self._brokers.append(_Candidate(broker, load=load, rank=rank, domains=known))
        self._domain_count = len(numbers)
        # By the number of the region; the other domains' places stay empty.
        self._region_leaders = [0] * len(numbers)
        self._placed_region_leaders = [0] * len(numbers)
        for one in self._brokers:
            self._region_leaders[one.region] += one.leaders

    def place_one(self, replication_factor: int) -> Replicas:
        """Choose the replicas of one partition, and count them."""
        leader = min(self._brokers, key=self._leader_key)
        leader.leaders += 1
        leader.placed_leaders += 1
        self._placed_region_leaders[leader.region] += 1
        self._region_leaders[leader.region] += 1
        held = [0] * self._domain_count
        chosen = [self._take(leader, held)]
        free = [one for one in self._brokers if one is not leader]
        while len(chosen) < replication_factor:
            follower = min(free, key=lambda one: self._follower_key(one, held))
            free.remove(follower)
            chosen.append(self._take(follower, held))
        return tuple(chosen)

    @staticmethod
    def _take(one: _Candidate, held: list[int]) -> BrokerId:
        one.replicas += 1
        one.placed_replicas += 1
        for domain in one.domains:
            held[domain] += 1
        return one.id

    def _leader_key(self, one: _Candidate) -> tuple[float, ...]:
        return (
            one.rank,
            one.placed_leaders,
            one.leaders,
            self._placed_region_leaders[one.region],
            self._region_leaders[one.region],
            one.placed_replicas,
            one.replicas,
            self._draw(),
        )

    def _follower_key(self, one: _Candidate, held: list[int]) -> tuple[float, ...]:
        region, zone, rack, host = one.domains
        return (
            one.rank,
            held[region],
            held[zone],
            held[rack],
            held[host],
            one.placed_replicas,
            one.replicas,
            self._draw(),
        )


def domains_of(broker: Broker) -> tuple[Domain, ...]:
    """The failure domains of a broker, widest first: (region,), (region, zone), and so on.

    Each carries its path: zone "a" of two regions is two zones. A missing label is one shared
    domain: brokers without labels differ only by their load."""
    return tuple(domain_of(broker.labels, level) for level in LEVELS)
