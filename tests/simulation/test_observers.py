"""Observers through faults, and far away: nothing is lost, and nobody waits for them.

Source: docs/decisions/0017-observers.md; design section 6."""

from dataclasses import replace

import pytest
from tests.simulation.full_speed import FullSpeedProducer, leader_of, run_for
from tests.simulation.plain_scenario import plain_scenario, started
from tests.simulation.scenario_checks import kept

from strandline.model.ids import BrokerId
from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.swarm.swarm import run_scenario
from strandline.simulation.swarm.variations import (
    with_deletions,
    with_moves,
    with_observers,
)
from strandline.simulation.world.world import World

FAR = BrokerId(4)
FAR_ONE_WAY_US = 100_000
SEEDS = (1, 3, 21, 31, 65, 116)


def watched(seed: int) -> Scenario:
    """The whole brokers of a seed, with observers wherever somebody is left to be one."""
    drawn = Scenario.draw(seed).whole()
    return with_observers(with_moves(with_deletions(drawn)), share=1.0)


@pytest.mark.simulation
def test_topics_with_observers_keep_every_promise_through_faults() -> None:
    scenarios = [watched(seed) for seed in SEEDS]
    assert all(any(plan.observers for plan in one.groups) for one in scenarios)
    outcomes = [run_scenario(one) for one in scenarios]
    assert [outcome.violation for outcome in outcomes] == [None] * len(SEEDS)
    assert sum(outcome.tally.election_count for outcome in outcomes) > 100
    assert sum(outcome.tally.move_count for outcome in outcomes) > 0


@pytest.mark.simulation
def test_roles_change_through_faults_as_policies_do() -> None:
    """The role of each of six brokers, at some time, in some order, and back."""
    outcome = kept("observers-through-faults")
    assert outcome.tally.balance_count >= 4
    committed = [line for line in outcome.trace if "group-1-0: configuration" in line]
    final = [line for line in committed if " and " not in line]
    for observers in (", observers 5,", ", observers 3, 4,", ", observers 5, 6,"):
        assert any(f"{observers} min.insync" in line for line in final)
    assert any("observers" not in line for line in final)


# ---- far away ------------------------------------------------------------------------------------


def far_world(*, is_watched: bool) -> World:
    """Three voters near each other, and perhaps an observer 200 ms away."""
    plain = plain_scenario(brokers=4, jitter_ratio=0.0, flush_us=(500, 500))
    (group,) = plain.groups
    voters = group.voters[:3]
    one_way_us = {
        (a, b): FAR_ONE_WAY_US if "south" in (a, b) and a != b else 500
        for a in ("west", "south")
        for b in ("west", "south")
    }
    return started(
        replace(
            plain,
            regions=("west", "west", "west", "south"),
            one_way_us=one_way_us,
            groups=(
                replace(
                    group,
                    voters=voters,
                    observers=(FAR,) if is_watched else (),
                    hosts=(*voters, FAR),
                ),
            ),
        )
    )


def answered(world: World, *, cut: bool = False, down: bool = False) -> int:
    """Batches with acks=all that are answered within two seconds, one at a time each ms."""
    producer = FullSpeedProducer(
        world, leader_of(world), acks=-1, batch_bytes=1_000, requests_per_pass=1
    )
    run_for(world, 500)
    before = leader_of(world).high_watermark
    if cut:
        for other in world.scenario.brokers[:3]:
            world.fabric.cut(FAR, other)
            world.fabric.cut(other, FAR)
    if down:
        world.hosts[FAR].kill()
    run_for(world, 2_000)
    assert producer.errors == [] and world.checker.violation is None
    assert producer.pending_count < 10, "what waits is a few milliseconds' worth"
    return leader_of(world).high_watermark - before


@pytest.mark.parametrize("fault", ["", "cut", "down"])
def test_writes_go_on_as_without_it_whatever_becomes_of_a_far_observer(fault: str) -> None:
    """As many are answered, in the same time, as where there is none."""
    alone = answered(far_world(is_watched=False))
    beside = answered(far_world(is_watched=True), cut=fault == "cut", down=fault == "down")
    assert alone > 1_500
    assert beside >= alone - 5


def test_a_far_observer_that_was_cut_off_has_everything_again() -> None:
    world = far_world(is_watched=True)
    answered(world, cut=True)
    for other in world.scenario.brokers[:3]:
        world.fabric.heal(FAR, other)
        world.fabric.heal(other, FAR)
    leader = leader_of(world)
    for _ in range(50):
        run_for(world, 200)
        (far,) = [one for one in world.cluster.replicas() if one.self_id == FAR]
        if far.high_watermark > leader.high_watermark - 500:
            break
    assert far.high_watermark > leader.high_watermark - 500
    assert world.checker.violation is None
