"""Solves a policy for the brokers of a cluster: placements, or a refusal with reasons.

How:    The exact search tries the numbers of voters in ascending order, and takes the first with a
        placement. If none has one, it refuses with the reasons for the smallest number, the missing
        labels, the brokers that would help, and the nearest policy that can be met.
Source: design section 7; decision 0008."""

from collections.abc import Iterable
from dataclasses import replace

import msgspec

from strandline.base.rng import Rng
from strandline.model.ids import BrokerId
from strandline.placement.policy.document import Policy, needed_labels
from strandline.placement.solver.counts import voter_counts
from strandline.placement.solver.floors import with_floors
from strandline.placement.solver.leaders import LeaderChoice
from strandline.placement.solver.many import place_many
from strandline.placement.solver.newcomers import newcomers
from strandline.placement.solver.plan import Plan, make_plan
from strandline.placement.solver.refusal import Refusal, refusal_of
from strandline.placement.solver.relaxing import nearest_policy
from strandline.placement.solver.request import Request
from strandline.placement.solver.search import ANY_COST, NODES_MAX, Found, Search, orbits_of
from strandline.placement.topology.labels import MissingLabel, missing_labels
from strandline.placement.topology.universe import BrokerState, Candidate, Universe

NEAREST_NODES_MAX = 300
NEWCOMERS_NODES_MAX = 60
"""Few: if one more broker helps, the search finds a placement within a few steps."""
COUNT_NODES_MIN = 500
"""The least steps for each number of voters, even if smaller numbers used up `nodes_max`."""


class Placed(msgspec.Struct, frozen=True):
    """One partition's replicas."""

    voters: tuple[BrokerId, ...]
    """The preferred leader first."""
    observers: tuple[BrokerId, ...] = ()

    @property
    def replicas(self) -> tuple[BrokerId, ...]:
        """All replicas, the preferred leader first, observers last."""
        return self.voters + self.observers


class Solution(msgspec.Struct, frozen=True):
    """Placements that satisfy the policy."""

    partitions: tuple[Placed, ...]
    cost: int
    """The cost of the best placement found, by the soft constraints."""
    is_proved: bool
    """Whether no placement costs less; otherwise the search ran out of steps."""
    searches: int = 0
    """How many partitions needed a search, because the descent by load found no good placement."""


def missing_for(policy: Policy, candidates: Iterable[Candidate]) -> list[MissingLabel]:
    """The brokers that lack a label which a rule of the policy needs. The policy may be met without
    them. Brokers that are being emptied are left out."""
    return missing_labels(
        needed_labels(policy),
        [
            (one.id, one.labels)
            for one in candidates
            if one.state is not BrokerState.DECOMMISSIONING
        ],
    )


def best_plan(
    request: Request,
    universe: Universe,
    *,
    nodes_max: int = NODES_MAX,
    names_blocking: bool = True,
) -> tuple[Plan, Found] | Refusal:
    """The plan with the fewest voters that has a placement, and its best placement; or a
    refusal."""
    first: tuple[Plan, Found] | None = None
    steps = nodes_max
    for voters in voter_counts(request):
        plan = with_floors(make_plan(request, universe, voters=voters))
        found = Search(plan, orbits_of(plan), nodes_max=max(steps, COUNT_NODES_MIN)).run()
        steps -= found.nodes
        if found.seats is not None:
            return plan, found
        first = first or (plan, found)
    if first is None:
        return _hopeless(request)
    return refusal_of(*first, names_blocking=names_blocking)


def solve(
    request: Request,
    candidates: Iterable[Candidate],
    *,
    partitions: int = 1,
    rng: Rng,
    explains: bool = True,
) -> Solution | Refusal:
    """Place `partitions` partitions, or refuse with reasons. The same seed gives the same answer.

    `explains`: a refusal also names brokers that would help, and the nearest policy that can be
    met; that takes a while."""
    candidates = tuple(candidates)
    universe = Universe(candidates)
    planned = best_plan(request, universe)
    if isinstance(planned, Refusal):
        return _explained(request, universe, planned) if explains else planned
    plan, best = planned
    placer = place_many(plan, best, partitions=partitions, rng=rng)
    placed = placer.placed
    if len(placed) < partitions:
        return Refusal(
            wanted=f"{partitions} partitions",
            hint=f"the brokers are full after {len(placed)} of them",
        )
    groups = plan.shape.groups
    voters = [
        universe.mask(bit for bit, group in seats if groups[group].is_voter) for seats in placed
    ]
    leaders = LeaderChoice(plan, rng=rng).choose(voters)
    ids = [one.id for one in universe.candidates]
    return Solution(
        partitions=tuple(
            Placed(
                voters=(
                    ids[leader],
                    *(ids[bit] for bit, g in seats if groups[g].is_voter and bit != leader),
                ),
                observers=tuple(ids[bit] for bit, g in seats if not groups[g].is_voter),
            )
            for seats, leader in zip(placed, leaders, strict=True)
        ),
        cost=best.cost,
        is_proved=best.is_proved,
        searches=placer.searches,
    )


def can_be_met(request: Request, universe: Universe, *, nodes_max: int) -> bool:
    """Whether some placement satisfies the policy's hard constraints."""
    for voters in voter_counts(request):
        plan = make_plan(request, universe, voters=voters)
        plan = replace(plan, soft=())
        search = Search(plan, orbits_of(plan), good_enough=ANY_COST, nodes_max=nodes_max)
        if search.run().seats is not None:
            return True
    return False


def _explained(request: Request, universe: Universe, refusal: Refusal) -> Refusal:
    """The refusal, with brokers that would help and the nearest policy that can be met."""

    return msgspec.structs.replace(
        refusal,
        newcomers=newcomers(
            request.policy,
            universe,
            lambda more: can_be_met(request, more, nodes_max=NEWCOMERS_NODES_MAX),
        ),
        nearest=nearest_policy(
            request.policy,
            lambda policy: can_be_met(
                replace(request, policy=policy), universe, nodes_max=NEAREST_NODES_MAX
            ),
        ),
    )


def _hopeless(request: Request) -> Refusal:
    least = request.min_insync_replicas
    return Refusal(
        wanted="the voters",
        hint=f"no number of voters survives that much with min.insync.replicas={least}: ask for "
        "less of either",
    )
