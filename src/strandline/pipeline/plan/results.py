"""The results of a plan: one `Outlook` for each policy, all of it data.

Why:    the command's table, its JSON and the report say the same.
How:    tallies of all trials become estimates; traffic is computed, not simulated."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strandline.model.cluster import Roles
from strandline.pipeline.plan.alternatives import Placed
from strandline.pipeline.plan.assumptions import HOURS_A_YEAR
from strandline.pipeline.plan.estimates import Estimate, Estimates
from strandline.pipeline.plan.tally import Tally
from strandline.pipeline.plan.traffic import YearlyTraffic, yearly_traffic
from strandline.pipeline.plan.trials import Plan, TrialRow
from strandline.placement.explain.outcomes import Outcome, outcomes
from strandline.placement.explain.topics import placement_of
from strandline.placement.policy.text import encode_policy
from strandline.placement.topology.universe import Universe

Column = NDArray[np.float64]
Columns = dict[str, Column]
SAMPLED_BELOW = 1.0
"""Stops of a partition in a year."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What one policy is worth. Hours, counts, bytes and money are of one year."""

    name: str
    policy: str
    """Canonical JSON."""
    voters: int
    observers: int
    min_insync: int
    writable: Estimate
    """Share of time in which a partition accepts acks=all."""
    readable: Estimate
    """Share of time in which it has a leader."""
    stopped_h: Estimate
    """Hours in which acks=all waits for brokers or an operator, of a partition."""
    topic_stopped_h: Estimate
    """Hours in which any partition does."""
    failover_h: Estimate
    """Hours in which a partition elects a leader, has one appointed, or promotes observers."""
    stops: Estimate
    """How often a partition stops."""
    losses: Estimate
    """How often acknowledged records of the topic may be lost for good."""
    losses_seen: int
    """In how many simulated losses they were."""
    lost_gb: Estimate
    """At most so much of them."""
    thin_h: Estimate
    """Hours in which one more lost broker could take acknowledged records along."""
    repair_gb: Estimate
    repair_cross_region_gb: Estimate
    repair_cost: Estimate
    traffic: YearlyTraffic
    fewer_stopped_h: Estimate | None
    """Hours without writes beyond those of the first policy, in the same simulated years; None for
    the first one."""
    single_losses: tuple[Outcome, ...]
    """What each class of loss does, as `strandline topic create` tells it."""
    partitions: tuple[Roles, ...]

    @property
    def cost(self) -> Estimate:
        """Money a year: traffic, disks and repairs."""
        return self.repair_cost.plus(self.traffic.cost)


@dataclass(frozen=True, slots=True)
class Results:
    """All of them, and what they rest on."""

    brokers: int
    regions: tuple[str, ...]
    currency: str
    seed: int
    trials: int
    losses: int
    outlooks: tuple[Outlook, ...]


def results_of(plan: Plan, rows: Sequence[TrialRow]) -> Results:
    """The results of all trials of a plan."""
    estimates = Estimates(len(rows))
    names = Tally.names()
    columns = [
        {
            name: np.array([row.tallies[position][place] for row in rows])
            for place, name in enumerate(names)
        }
        for position in range(len(plan.alternatives))
    ]
    regions = dict.fromkeys(one.labels.region for one in plan.candidates)
    return Results(
        brokers=len(plan.candidates),
        regions=tuple(filter(None, regions)),
        currency=plan.assumptions.prices.currency,
        seed=plan.seed,
        trials=len(rows),
        losses=sum(row.losses for row in rows),
        outlooks=tuple(
            _outlook(
                plan, placed, estimates, columns[position], None if not position else columns[0]
            )
            for position, placed in enumerate(plan.alternatives)
        ),
    )


def _outlook(
    plan: Plan, placed: Placed, estimates: Estimates, columns: Columns, first: Columns | None
) -> Outlook:
    request = placed.alternative.request
    mean = {name: estimates.mean(column) for name, column in columns.items()}
    stopped, unreadable = _stops_of(columns)
    unseen_h = 0.0
    if not stopped.any():
        # Never in danger: at most so often, and then as long as the longest kind of loss.
        rates = plan.assumptions.losses.by_level().values()
        unseen_h = estimates.limit * max(one.mean_hours for one in rates)
    stopped_h = _limited(estimates.mean(stopped), unseen_h)
    unwritable_h = estimates.mean(stopped + columns["failover_h"]).widened(unseen_h)
    leaderless_h = estimates.mean(unreadable + columns["election_h"]).widened(unseen_h)
    universe = Universe(plan.candidates)
    one = placed.partitions[0]
    return Outlook(
        name=placed.name,
        policy=encode_policy(request.policy),
        voters=len(one.voters),
        observers=len(one.observers),
        min_insync=request.min_insync_replicas,
        writable=unwritable_h.times(1 / HOURS_A_YEAR).complement(),
        readable=leaderless_h.times(1 / HOURS_A_YEAR).complement(),
        stopped_h=stopped_h,
        topic_stopped_h=_limited(mean["topic_stopped_h"], unseen_h),
        failover_h=mean["failover_h"],
        stops=mean["stops_expected"],
        losses=mean["losses_topic_expected"],
        losses_seen=round(float(columns["losses_topic"].sum())),
        lost_gb=mean["lost_gb"],
        thin_h=mean["thin_h"],
        repair_gb=mean["repair_gb"],
        repair_cross_region_gb=mean["repair_cross_region_gb"],
        repair_cost=mean["repair_cost"],
        traffic=yearly_traffic(
            placed.partitions,
            universe,
            request,
            traffic=plan.assumptions.traffic,
            table=plan.assumptions.prices,
        ),
        fewer_stopped_h=None
        if first is None
        else estimates.difference(
            stopped + columns["failover_h"], _stops_of(first)[0] + first["failover_h"]
        ),
        single_losses=outcomes(
            [
                (placement_of(universe, roles, request), (number,))
                for number, roles in enumerate(placed.partitions)
            ],
            placed.rules,
            goals=request.policy.survive,
        ),
        partitions=placed.partitions,
    )


def _stops_of(columns: Columns) -> tuple[Column, Column]:
    """Hours stopped, and hours of these without a leader, of each year: counted if stops are
    common, else from stops that were drawn (`stops`), which vary less."""
    if columns["stops_expected"].mean() < SAMPLED_BELOW:
        return columns["stopped_sampled_h"], columns["unreadable_sampled_h"]
    return columns["stopped_h"], columns["unreadable_h"]


def _limited(found: Estimate, limit: float) -> Estimate:
    """With this upper limit, if it was never seen."""
    return found if found.is_seen else Estimate(0.0, 0.0, limit, is_seen=False)
