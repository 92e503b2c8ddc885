"""Policy and brokers in, placements or a refusal out.

How:    The exact search tries the numbers of voters in ascending order; the first with a placement
        is taken. If none has one, the refusal is that of the smallest, with the missing labels and
        the nearest policy that can be met.
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
"""Few: where another broker helps, a placement is a few steps away."""
COUNT_NODES_MIN = 500
"""Steps that each number of voters gets, even where those before it took all there are."""


class Placed(msgspec.Struct, frozen=True):
    """One partition's replicas."""

    voters: tuple[BrokerId, ...]
    """The preferred leader first."""
    observers: tuple[BrokerId, ...] = ()

    @property
    def replicas(self) -> tuple[BrokerId, ...]:
        """All of them, the preferred leader first, observers last."""
        return self.voters + self.observers


class Solution(msgspec.Struct, frozen=True):
    """Placements that satisfy the policy."""

    partitions: tuple[Placed, ...]
    cost: int
    """The least that a placement of this policy can cost by its soft constraints."""
    is_proved: bool
    """Whether nothing costs less; else the search ran out of steps."""
    searches: int = 0
    """For how many partitions the descent by load did not do."""


def missing_for(policy: Policy, candidates: Iterable[Candidate]) -> list[MissingLabel]:
    """Which broker lacks a label that some rule of the policy needs; there may be placements
    without it. Brokers that are leaving are left out."""
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
    """The plan with the fewest voters that can be met, and its best placement; or why there is
    none."""
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
    """Place so many partitions, or say why that cannot be. One seed, one answer.

    `explains`: look for the brokers that would help, and for the nearest policy that can be met,
    which takes a while."""
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
    """With what could be: other brokers, or another policy."""

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
