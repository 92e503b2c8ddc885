"""Every placement of a small cluster that satisfies a policy, as the solver writes placements."""

from collections.abc import Iterator, Sequence

from tests.placement.solver_world import assignments, holds, rules_of

from strandline.placement.constraints.contract import Seat
from strandline.placement.solver.plan import Plan
from strandline.placement.solver.request import Request
from strandline.placement.topology.universe import Candidate


def right_seats(
    request: Request, plan: Plan, candidates: Sequence[Candidate], *, voters: int
) -> Iterator[list[Seat]]:
    """All seats of a partition for which the hard constraints hold; found without the solver."""
    number = {id(rule): n for n, rule in enumerate(request.policy.rules)}
    groups = {group.rule: n for n, group in enumerate(plan.shape.groups)}
    index = plan.universe.index
    for replicas in assignments(rules_of(request.policy, voters), candidates):
        if holds(request, replicas, candidates):
            yield [(index[one.id], groups[number.get(id(rule), -1)]) for one, rule in replicas]
