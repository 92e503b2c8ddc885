"""Builds the placement with the present voters, while these differ from its own voters.

Why:    lost voters may have left, and observers may stand in. The present voters decide whether the
        partition goes on, and what one more loss does.
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
    """The placement with the voters `acting` and no others; unchanged if `acting` is empty.

    acks=all needs as many of them as it needs of the placement's own voters."""
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
