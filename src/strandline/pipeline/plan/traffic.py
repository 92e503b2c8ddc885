"""Bytes that cross regions and zones in a year, and what they and the disks cost.

Why:    the other half of a decision: what survival costs while nothing is lost.
How:    Replication by `placement.explain.traffic`: to each other region once. Producers write to
        the leader; consumers read from a replica in their region, else from it. A GB is 10**9
        bytes. Traffic of clients within a region is free.
Source: decisions 0031 and 0034."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from strandline.base.errors import OperatorError
from strandline.model.cluster import Roles
from strandline.model.ids import BrokerId
from strandline.pipeline.plan.assumptions import HOURS_A_YEAR, SECONDS_AN_HOUR, PriceTable, Traffic
from strandline.placement.explain.prices import require_links
from strandline.placement.explain.topics import placement_of
from strandline.placement.explain.traffic import traffic_of
from strandline.placement.solver.request import Request
from strandline.placement.topology.described import require_regions
from strandline.placement.topology.universe import Universe

MONTHS_A_YEAR = 12
_MB_A_GB = 1_000


@dataclass(frozen=True, slots=True)
class YearlyTraffic:
    """In GB a year, and money a year. `stored_gb`: at any time, on all replicas."""

    produced_gb: float
    produce_cross_region_gb: float
    replication_cross_region_gb: float
    replication_cross_zone_gb: float
    read_cross_region_gb: float
    stored_gb: float
    produce_cost: float
    replication_cost: float
    read_cost: float
    storage_cost: float

    @property
    def cost(self) -> float:
        """All of it."""
        return self.produce_cost + self.replication_cost + self.read_cost + self.storage_cost


class CopyPrices:
    """What a GB from one broker to another one costs."""

    def __init__(self, universe: Universe, table: PriceTable) -> None:
        self._labels = {one.id: one.labels for one in universe.candidates}
        self._table = table
        self._links = {(one.source, one.target): float(one.per_gb) for one in table.links}

    def crosses(self, source: BrokerId, target: BrokerId) -> bool:
        """Whether it leaves the region."""
        return self._labels[source].region != self._labels[target].region

    def per_gb(self, source: BrokerId, target: BrokerId) -> float:
        """Money for a GB."""
        here, there = self._labels[source], self._labels[target]
        if here.region != there.region:
            return self.between(here.region, there.region)
        return self._table.cross_zone_per_gb if here.zone != there.zone else 0.0

    def between(self, source: str, target: str) -> float:
        """Money for a GB between two regions; 0 within one."""
        if source == target:
            return 0.0
        return self._links.get((source, target), self._table.cross_region_per_gb)


def check_regions(traffic: Traffic, table: PriceTable, universe: Universe, *, source: str) -> None:
    """Refuse producers, readers and prices in regions that the cluster does not have; raises
    OperatorError with one line."""
    regions = [one.labels.region for one in universe.candidates]
    require_regions(traffic.producers, regions, source=f"{source}: traffic.producers")
    require_regions(traffic.readers, regions, source=f"{source}: traffic.readers")
    require_links(table.transfer(), regions, source=f"{source}: prices")
    if not any(regions):
        raise OperatorError(f"{source}: no broker of the cluster says its region: give it labels")


def yearly_traffic(
    partitions: Sequence[Roles],
    universe: Universe,
    request: Request,
    *,
    traffic: Traffic,
    table: PriceTable,
) -> YearlyTraffic:
    """The year of a topic with these partitions, led by their preferred leaders; with leaders that
    follow the writers, from where most is produced."""
    regions = sorted({one.labels.region for one in universe.candidates if one.labels.region})
    shares = _shares(traffic.producers or dict.fromkeys(regions, 1.0))
    readers = traffic.readers or dict.fromkeys(regions, 1.0)
    prices, transfer = CopyPrices(universe, table), table.transfer()
    produced_gb = traffic.produced_mb_per_s / _MB_A_GB * SECONDS_AN_HOUR * HOURS_A_YEAR
    each_gb = produced_gb / len(partitions)
    sums = dict.fromkeys(("produce", "across", "zones", "read"), 0.0)
    costs = dict.fromkeys(("produce", "replication", "read"), 0.0)
    region_of = {one.id: one.labels.region for one in universe.candidates}
    for roles in partitions:
        leader = _leader(roles, region_of, shares, follows=bool(request.policy.leaders.follow))
        home = region_of[leader]
        by_leader = traffic_of(placement_of(universe, roles, request))
        way = next(one for one in by_leader if one.leader == leader)
        sums["across"] += way.cross_region * each_gb
        sums["zones"] += way.cross_zone * each_gb
        costs["replication"] += float(transfer.of(way)) * each_gb
        for region, share in shares.items():
            sums["produce"] += share * each_gb * (region != home)
            costs["produce"] += share * each_gb * prices.between(region, home)
        near = {region_of[one] for one in roles.all}
        for region, groups in readers.items():
            far_gb = 0.0 if region in near else groups * each_gb
            sums["read"] += far_gb * (region != home)
            costs["read"] += far_gb * prices.between(home, region)
    replicas = sum(len(one.all) for one in partitions) / len(partitions)
    stored_gb = produced_gb * traffic.retained_hours / HOURS_A_YEAR * replicas
    return YearlyTraffic(
        produced_gb=produced_gb,
        produce_cross_region_gb=sums["produce"],
        replication_cross_region_gb=sums["across"],
        replication_cross_zone_gb=sums["zones"],
        read_cross_region_gb=sums["read"],
        stored_gb=stored_gb,
        produce_cost=costs["produce"],
        replication_cost=costs["replication"],
        read_cost=costs["read"],
        storage_cost=stored_gb * table.storage_per_gb_month * MONTHS_A_YEAR,
    )


def _shares(weights: Mapping[str, float]) -> dict[str, float]:
    total = sum(weights.values())
    return {region: weight / total for region, weight in weights.items()}


def _leader(
    roles: Roles,
    region_of: Mapping[BrokerId, str],
    shares: Mapping[str, float],
    *,
    follows: bool,
) -> BrokerId:
    if not follows:
        return roles.voters[0]
    return max(roles.voters, key=lambda one: shares.get(region_of[one], 0.0))
