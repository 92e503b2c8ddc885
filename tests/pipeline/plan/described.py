"""Small clusters, policies and plans for the tests of the plan pipeline."""

from collections.abc import Sequence

from strandline.pipeline.plan.alternatives import parse_alternatives, place
from strandline.pipeline.plan.assumptions import (
    Assumptions,
    Losses,
    LossRate,
    Recovery,
    decode_assumptions,
)
from strandline.pipeline.plan.trials import Plan
from strandline.placement.topology.described import DescribedCluster, decode_cluster

NEVER = LossRate(0.0, 1.0)
NO_LOSSES = Losses(NEVER, NEVER, NEVER, NEVER, NEVER)
AT_ONCE = Recovery(0.0, 0.0, 0.0, broker_gb=0.0)
"""No pauses, no copies."""


def cluster_of(regions: int, zones: int = 1, brokers: int = 1) -> DescribedCluster:
    """So many regions of so many zones of so many brokers."""
    lines = [
        f"  - {{count: {brokers}, region: r{region}, zone: z{zone}}}"
        for region in range(regions)
        for zone in range(zones)
    ]
    return decode_cluster("brokers:\n" + "\n".join(lines))


def plan_of(
    cluster: DescribedCluster,
    policies: Sequence[str],
    assumptions: Assumptions | str,
    *,
    partitions: int = 6,
    seed: int = 7,
) -> Plan:
    """A plan for these policies."""
    if isinstance(assumptions, str):
        assumptions = decode_assumptions(assumptions, source="test")
    placed = tuple(
        place(
            one,
            cluster,
            partitions=partitions,
            config=assumptions.config(),
            controllers=assumptions.controllers,
        )
        for one in parse_alternatives(policies, cluster)
    )
    return Plan(cluster.candidates, placed, assumptions, seed)
