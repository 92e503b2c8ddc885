"""A placement as it votes now, while other replicas vote than when all are well.

Why:    lost voters may have left, and observers stand in: what continues, and what one more loss
        would do, depends on these.
Source: decisions 0020 and 0025."""

from collections.abc import Collection
from dataclasses import replace

from strandline.model.ids import BrokerId
from strandline.placement.solver.request import Request
from strandline.placement.survival.replicas import Placement, Quorum, Replica
from strandline.placement.topology.universe import Universe


def as_voting(
    placement: Placement, acting: Collection[BrokerId], universe: Universe, request: Request
) -> Placement:
    """The placement in which only these vote; unchanged if `acting` is empty. acks=all asks for
    as many of them as it does of the placement's voters."""
    if not acting:
        return placement
    voters = [
        Replica(one, universe.candidates[universe.index[one]].labels)
        for one in acting
        if one in universe.index
    ]
    rest = [replace(one, role="observer") for one in placement.replicas if one.broker not in acting]
    least = request.min_insync_replicas
    quorum = Quorum.of(len(acting), least)
    return Placement(
        [*voters, *rest], quorum=replace(quorum, asked=min(least, len(placement.voters)))
    )
