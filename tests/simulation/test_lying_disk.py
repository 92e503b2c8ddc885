"""What a disk that says "flushed" and keeps nothing can cost, and what an operator can do about it.

An acknowledgement waits for W copies. With one disk of the voters lying, W - 1 are real. A leader
is elected by a majority; so an acknowledged record outlives every election as long as no majority
can do without all of the W - 1: W has to be a majority and one more. With W a majority the record
may be lost, here as in every log that is replicated by majorities."""

from dataclasses import replace
from itertools import product

import pytest
from tests.simulation.plain import plain_scenario, started

from strandline.simulation.damage import LOGS
from strandline.simulation.scenario import ProducerPlan, Scenario
from strandline.simulation.strikes import cut
from strandline.simulation.swarm import run_scenario

FAULTS = ("lying-disk", "kill-leader", "isolation", "leader-power-failure", "reset")
PRODUCERS = tuple(
    ProducerPlan(f"p1.{number}", 1, -1, True, 15, 300)  # type: ignore[arg-type]
    for number in range(2)
)


def scenario_with_a_liar(seed: int, *, copies: int) -> Scenario:
    plain = plain_scenario(seed=seed, brokers=5, producers=PRODUCERS)
    return replace(
        plain,
        groups=tuple(replace(plan, min_insync=copies) for plan in plain.groups),
        fault_weights=dict.fromkeys(FAULTS, 1),
        fault_interval_ms=250,
        active_ms=4_000,
        consumer_count=2,
    )


@pytest.mark.simulation
@pytest.mark.parametrize("seed", range(1, 9))
def test_with_one_copy_more_than_a_majority_nothing_is_lost(seed: int) -> None:
    outcome = run_scenario(scenario_with_a_liar(seed, copies=4))
    assert outcome.violation is None
    assert outcome.tally.acknowledged_count > 0


def violation_of_a_liar(copies: int) -> str | None:
    """Who acknowledges a record is the leader, a follower whose disk lies, and as many more as it
    takes; the others are cut off. The liar loses power; the leader and somebody else die with it,
    and stay away, and the others can be reached again."""
    world = started(replace(scenario_with_a_liar(1, copies=copies), fault_weights={}))
    (leader,) = world.leading_brokers()
    liar, *honest = [broker for broker in world.scenario.brokers if broker != leader]
    acknowledging = [leader, liar, *honest[: copies - 2]]
    others = honest[copies - 2 :]
    world.hosts[liar].disk.faults.lying_directory = LOGS
    heal = cut(world, [*product(acknowledging, others), *product(others, acknowledging)])
    for producer in world.producers:
        producer.start()
    world.advance(1_000)
    for producer in world.producers:
        producer.stop()
    assert sum(producer.acknowledged_count for producer in world.producers) > 10
    for dead in (leader, acknowledging[2]):
        world.hosts[dead].on_down = None
        world.hosts[dead].kill()
    world.hosts[liar].fail_power()
    world.restart(liar)
    heal()
    world.advance(10_000)
    assert world.leading_brokers()
    return world.checker.violation


@pytest.mark.simulation
def test_with_one_copy_more_two_that_die_beside_the_liar_take_nothing_with_them() -> None:
    assert violation_of_a_liar(4) is None


@pytest.mark.simulation
def test_with_a_majority_alone_an_acknowledged_record_may_be_lost() -> None:
    """Not a promise: what falls short, and what an operator has to know of."""
    violation = violation_of_a_liar(3)
    assert violation is not None
    assert violation.startswith("LeaderCompleteness: ")
