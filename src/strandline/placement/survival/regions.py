"""Which regions the controller takes for down while brokers are silent. Pure.

Why:    the promotion `region-lost` depends on whole regions, including brokers that hold no replica
        of the topic; and a region with too few brokers is never down.
How:    the cluster's marks, as a number of silent brokers for each region.
Owns:   nothing.
Source: decisions 0018 and 0025."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Set

from strandline.model.ids import BrokerId
from strandline.placement.survival.replicas import Placement, Replica


class Regions:
    """All brokers of a cluster, and its marks. `silent_at`: {region: so many of its brokers have to
    be silent}, without those that are never down."""

    def __init__(self, brokers: Iterable[Replica] = (), silent_at: Mapping[str, int] = {}) -> None:
        self.brokers = tuple(brokers)
        self._region_of = {one.broker: one.labels.region for one in self.brokers}
        self._silent_at = silent_at

    def all_but(self, some: Set[BrokerId]) -> frozenset[BrokerId]:
        """The other brokers."""
        return frozenset(self._region_of.keys() - some)

    def down(self, silent: Iterable[BrokerId]) -> frozenset[str]:
        """The regions that are taken for down once these have been silent for long enough."""
        counts = Counter(self._region_of.get(one, "") for one in silent)
        return frozenset(
            region
            for region, count in counts.items()
            if region in self._silent_at and count >= self._silent_at[region]
        )

    def never_down(self, placements: Iterable[Placement]) -> tuple[str, ...]:
        """The regions with voters that are not, whatever is silent; by name."""
        found = {voter.labels.region for one in placements for voter in one.voters}
        return tuple(sorted(found - self._silent_at.keys() - {""}))


def lost_with_their_region(
    voters: Iterable[Replica], lost: Collection[BrokerId], down: Collection[str]
) -> int:
    """How many voters are lost in regions that are down, and have none left."""
    voters = tuple(voters)
    alive = {one.labels.region for one in voters if one.broker not in lost}
    return sum(one.labels.region in down and one.labels.region not in alive for one in voters)
