"""What would make a partition's replicas right again, for somebody who moves them by hand.

Source: decision 0008."""

import random
from collections.abc import Iterable, Sequence

from strandline.model.ids import BrokerId
from strandline.placement.solver.plan import make_plan
from strandline.placement.solver.refusal import Refusal
from strandline.placement.solver.repair import repair
from strandline.placement.solver.request import Request
from strandline.placement.solver.solve import solve
from strandline.placement.topology.universe import Candidate, Universe


def mended(
    request: Request, candidates: Iterable[Candidate], voters: Sequence[BrokerId]
) -> tuple[BrokerId, ...] | Refusal | None:
    """The voters after the fewest moves, those that stay first, in their order; why no placement
    is right; or None where none was found from here."""
    universe = Universe(candidates)
    anew = solve(request, universe.candidates, rng=random.Random(0))
    if isinstance(anew, Refusal):
        return anew
    plan = make_plan(request, universe, voters=len(anew.partitions[0].voters))
    found = repair(plan, [(voter, "voter") for voter in voters])
    if found is None:
        return None
    kept = {broker for broker, _ in found.kept}
    coming = sorted(broker for broker, role in found.coming if role == "voter")
    return (*(voter for voter in voters if voter in kept), *coming)
