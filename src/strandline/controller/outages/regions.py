"""How many silent brokers of each region make it count as down, for forecasts. Pure.

Why:    a forecast of the promotion `region-lost` must count as the controller does.
How:    the marks of a cluster's configuration, for each region that has brokers.
Source: decisions 0018 and 0025."""

from collections.abc import Mapping

from strandline.config.cluster import ClusterConfig
from strandline.controller.outages.domains import is_region, members
from strandline.controller.outages.marks import configured, silent_needed
from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId
from strandline.placement.survival.regions import Regions
from strandline.placement.survival.replicas import Replica


def regions_of(brokers: Mapping[BrokerId, Labels], config: ClusterConfig) -> Regions:
    """All brokers, and how many silent ones make their region count as down."""
    marks_of = configured(config)
    needed = {
        domain[0]: silent_needed(len(inside), marks_of(domain))
        for domain, inside in members(brokers).items()
        if is_region(domain)
    }
    return Regions(
        (Replica(broker, labels) for broker, labels in brokers.items()),
        {region: count for region, count in needed.items() if count is not None},
    )
