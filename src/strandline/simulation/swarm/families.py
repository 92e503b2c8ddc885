"""The families of seeds: what a seed stands for in each.

Why:    a seed means something only within its family; every command names both.
How:    `DRAWS[family](seed)` is the scenario.
Owns:   nothing.
Source: design section 10."""

from collections.abc import Callable, Mapping
from enum import StrEnum

from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.swarm.brief_swarm import draw_brief
from strandline.simulation.swarm.outage_swarm import draw_outages
from strandline.simulation.swarm.snapshot_swarm import draw_snapshots
from strandline.simulation.swarm.tiered_swarm import draw_tiered
from strandline.simulation.swarm.variations import draw


class Swarm(StrEnum):
    """A family of seeds."""

    USUAL = "usual"
    OUTAGES = "outages"
    BRIEF = "brief"
    SNAPSHOTS = "snapshots"
    TIERED = "tiered"


DRAWS: Mapping[Swarm, Callable[[int], Scenario]] = {
    Swarm.USUAL: draw,
    Swarm.OUTAGES: draw_outages,
    Swarm.BRIEF: draw_brief,
    Swarm.SNAPSHOTS: draw_snapshots,
    Swarm.TIERED: draw_tiered,
}
