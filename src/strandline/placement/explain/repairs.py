"""The moves that repair a partition's replicas, for an operator who moves them by hand.

Source: decision 0008."""

from collections.abc import Iterable

from strandline.base.rng import seeded
from strandline.model.cluster import Roles
from strandline.placement.solver.judge import seated
from strandline.placement.solver.plan import make_plan
from strandline.placement.solver.refusal import Refusal
from strandline.placement.solver.repair import repair
from strandline.placement.solver.request import Request
from strandline.placement.solver.solve import solve
from strandline.placement.topology.universe import Candidate, Universe


def repaired(
    request: Request, candidates: Iterable[Candidate], replicas: Roles
) -> Roles | Refusal | None:
    """The replicas after the fewest moves: of each role those that stay first, in their order. If
    no placement is right, the reason; None if the search found none."""
    universe = Universe(candidates)
    anew = solve(request, universe.candidates, rng=seeded(0))
    if isinstance(anew, Refusal):
        return anew
    plan = make_plan(request, universe, voters=len(anew.partitions[0].voters))
    present = seated(replicas)
    found = repair(plan, present)
    if found is None:
        return None
    stay = [one for one in present if one in found.kept]
    voters, observers = (
        tuple(broker for broker, is_of in (*stay, *sorted(found.coming)) if is_of == role)
        for role in ("voter", "observer")
    )
    return Roles(voters, observers)
