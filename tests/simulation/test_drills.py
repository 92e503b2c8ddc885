"""A region that cuts itself off: the others go on, it loses nothing and comes back by itself.

Source: docs/decisions/0019-drills.md."""

from dataclasses import dataclass, field

import pytest
from tests.simulation.scenario_checks import scenario_of

from strandline.broker.operations.isolation import Isolation
from strandline.model.ids import BrokerId, GroupId
from strandline.simulation.swarm.outage_additions import DRILL
from strandline.simulation.swarm.outage_swarm import draw_outages
from strandline.simulation.world.broker_member import BrokerMember
from strandline.simulation.world.scheduler import US_PER_MS
from strandline.simulation.world.world import World

LOOK_MS = 20


@dataclass
class Watch:
    """Looks at a world all the time: who is cut off, who leads meanwhile, and what is sent."""

    world: World
    times: list[set[BrokerId]] = field(default_factory=list)
    """Who was cut off together, time after time."""
    led_inside: set[GroupId] = field(default_factory=set)
    led_elsewhere: set[GroupId] = field(default_factory=set)
    cut: set[BrokerId] = field(default_factory=set)
    sent_bytes: int = -1

    def look(self) -> None:
        before, self.cut = self.cut, {one for one in self.members() if self.is_cut(one)}
        if self.cut and not before:
            self.times.append(set())
            self.led_inside |= {
                one.group
                for one in self.world.cluster.leading_replicas()
                if one.self_id in self.cut
            }
        if self.cut:
            self.times[-1] |= self.cut
            self.led_elsewhere |= {
                one.group
                for one in self.world.cluster.replicas()
                if one.is_serving and one.self_id not in self.cut
            }
        ways = self.world.fabric.counters.way_bytes
        sent_bytes = sum(size for (source, _), size in ways.items() if source in self.cut)
        assert before != self.cut or not before or sent_bytes == self.sent_bytes
        self.sent_bytes = sent_bytes
        self.world.scheduler.after(LOOK_MS * US_PER_MS, self.look)

    def members(self) -> dict[BrokerId, BrokerMember]:
        found = ((one, host.program) for one, host in self.world.hosts.items())
        return {one: program for one, program in found if isinstance(program, BrokerMember)}

    def is_cut(self, broker: BrokerId) -> bool:
        member = self.members()[broker]
        assert not (member.made.services.isolation.is_cut and member.is_serving)
        return member.made.services.isolation.is_cut


def watched() -> tuple[str | None, Watch]:
    world = World(scenario_of("region-drilled"))
    watch = Watch(world)
    world.scheduler.after(0, watch.look)
    return world.run(), watch


def test_a_region_is_cut_off_by_its_own_brokers_and_comes_back_by_itself() -> None:
    violation, watch = watched()
    assert violation is None
    world = watch.world
    regions = [{world.scenario.region_of(one) for one in brokers} for brokers in watch.times]
    assert len(regions) == 2 and all(len(one) == 1 for one in regions), regions
    for (region,), brokers in zip(regions, watch.times, strict=True):
        assert brokers == {
            b for b in world.scenario.brokers if world.scenario.region_of(b) == region
        }
    groups = {plan.group for plan in world.scenario.groups}
    assert groups & watch.led_inside and groups <= watch.led_elsewhere
    assert not watch.cut
    assert {host.start_count for host in world.hosts.values()} == {1}


def test_a_drill_that_does_not_end_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Isolation, "_end", lambda _: None)
    violation, _ = watched()
    assert violation is not None and violation.startswith("Progress: ")


def test_seeds_of_outages_draw_drills_beside_other_faults() -> None:
    drawn = [draw_outages(seed).faults or () for seed in range(1, 200)]
    drills = [faults for faults in drawn if any(one.kind == DRILL for one in faults)]
    assert drills and any(len(faults) > 3 for faults in drills)
