"""Two regions do not reach each other, and a third reaches both: writes go on while that lasts.

Seeds judge progress after the last fault; here it is judged during it.

Source: docs/decisions/0020-who-votes.md, "Cut off from each other"."""

from dataclasses import replace
from itertools import pairwise

import pytest
from tests.simulation.scenario_checks import scenario_of

from strandline.model.ids import CONTROLLER_GROUP, BrokerId, GroupId
from strandline.simulation.invariants.facts import Acknowledged
from strandline.simulation.swarm import outage_swarm
from strandline.simulation.swarm.outage_additions import CABLE, CUT_CABLES
from strandline.simulation.swarm.outage_swarm import FAMILIES, draw_outages
from strandline.simulation.swarm.swarm import run_scenario
from strandline.simulation.world.scheduler import US_PER_MS
from strandline.simulation.world.world import World

THIRD = BrokerId(1)
RESUMED_MS = 6_000
"""Silence, a second for which the group stands still, an appointment, and an observer that keeps
up."""
SEEDS = range(1, 21)


class Watch:
    """Notes when something was acknowledged, and who leads the controller when a fault begins."""

    def __init__(self, world: World) -> None:
        self.acked_ms: dict[GroupId, list[int]] = {}
        self.controllers: list[list[BrokerId]] = []
        self._world = world
        self._acknowledged = world.checker.acknowledged
        world.checker.acknowledged = self._on_acknowledged  # type: ignore[method-assign]
        for fault in world.scenario.faults or ():
            world.scheduler.after(fault.at_ms * US_PER_MS, self._look)

    def _on_acknowledged(self, fact: Acknowledged) -> None:
        self._acknowledged(fact)
        now_ms = self._world.scheduler.now_us // US_PER_MS
        self.acked_ms.setdefault(fact.group, []).append(now_ms)

    def _look(self) -> None:
        programs = {one: host.program for one, host in self._world.hosts.items()}
        self.controllers.append(
            [
                one
                for one, program in programs.items()
                if program is not None
                and (replica := program.replication.replicas.get(CONTROLLER_GROUP)) is not None
                and replica.is_leader
            ]
        )

    def longest_pause_ms(self, group: GroupId, from_ms: int, to_ms: int) -> int:
        """Between two acknowledgements, of those in this time."""
        some = [one for one in self.acked_ms[group] if from_ms <= one <= to_ms]
        moments = [from_ms, *some, to_ms]
        return max(after - before for before, after in pairwise(moments))


@pytest.mark.simulation
def test_writes_go_on_while_the_cable_is_cut_and_all_is_as_before_when_it_is_mended() -> None:
    scenario = scenario_of("cable-between-two-cities-cut")
    world = World(scenario)
    watch = Watch(world)
    assert world.run() is None
    assert watch.controllers == [[THIRD], [THIRD]]
    for fault in scenario.faults or ():
        for plan in scenario.groups:
            until_ms = fault.at_ms + fault.duration_ms
            assert watch.longest_pause_ms(plan.group, fault.at_ms, until_ms) <= RESUMED_MS


@pytest.mark.simulation
def test_beside_all_other_outages_every_promise_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    always = replace(CUT_CABLES, share=1.0)
    families = tuple(
        replace(
            family,
            additions=tuple(always if one is CUT_CABLES else one for one in family.additions),
        )
        for family in FAMILIES
    )
    monkeypatch.setattr(outage_swarm, "FAMILIES", families)
    drawn = [draw_outages(seed) for seed in SEEDS]
    cut = [one for one in drawn if any(fault.kind == CABLE for fault in one.faults or ())]
    assert len(cut) >= 8
    for one in cut:
        assert run_scenario(one).violation is None, f"seed {one.seed}"
