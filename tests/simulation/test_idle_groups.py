"""A group in which nothing is written works like any other: its followers know whom they follow."""

import pytest
from tests.simulation.plain_scenario import plain_scenario, run_until_led, started

from strandline.simulation.invariants.verdicts import observe_rest
from strandline.simulation.world.world import World

MS = 1_000


def run_for(world: World, duration_ms: int) -> None:
    world.scheduler.run_until(world.scheduler.now_us + duration_ms * MS)


@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("cut_ms", [1_500, 3_000])
def test_a_follower_that_missed_its_leader_for_a_while_finds_it_again(
    seed: int, cut_ms: int
) -> None:
    """Heartbeats tell what changed, and nothing did."""
    world = started(plain_scenario(seed=seed, groups=3))
    run_for(world, 2_000)
    assert run_until_led(world, limit_ms=5_000) is not None
    leaders = {replica.group: replica.self_id for replica in world.cluster.leading_replicas()}
    deaf = next(broker for broker in world.scenario.brokers if broker not in leaders.values())
    for broker in world.scenario.brokers:
        if broker != deaf:
            world.fabric.cut(broker, deaf)
    run_for(world, cut_ms)
    for broker in world.scenario.brokers:
        if broker != deaf:
            world.fabric.heal(broker, deaf)
    run_for(world, 6_000)  # What the cut held up may be on its way for as long as the cut took.
    known = {r.group: r.leader_id for r in world.cluster.replicas() if r.self_id == deaf}
    assert known == leaders
    observe_rest(world.cluster, world.load)
    assert world.checker.violation is None
