"""What a cancelled decommission brings back. Pure.

Why:    after a cancel the operator wants back what was: replicas and preferred leaders.
How:    A partition goes back where it was (`Cluster.returning`) if all of those brokers are there
        and may get replicas, and the policy wants no others.
Owns:   nothing.
Source: decision 0011."""

from collections.abc import Collection

from strandline.controller.balancer.needs import need_of
from strandline.controller.balancer.plans import Ask, Plans
from strandline.model.cluster import Cluster, Partition, Roles
from strandline.model.ids import BrokerId


def home_of(
    cluster: Cluster, plans: Plans, ask: Ask, partition: Partition, takers: Collection[BrokerId]
) -> Roles | None:
    """Where a partition goes back to; None where it stays."""
    home = cluster.returning.get(partition.group)
    if home is None or home == partition.roles or not plans.brokers.keys() >= {*home.all}:
        return None
    coming = set(home.all).difference(partition.roles.all)
    if coming.difference(takers) or not plans.lost.isdisjoint(home.all):
        return None
    wanted = plans.of(ask, home)
    if isinstance(wanted, str) or need_of(wanted, home) not in ("", "leaders"):
        return None
    return home
