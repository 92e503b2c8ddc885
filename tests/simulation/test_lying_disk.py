"""What a disk that says "flushed" and keeps nothing can cost, and what an operator can do about it.

An acknowledgement waits for W copies. With one disk of the voters lying, W - 1 are real. A leader
is elected by a majority; so an acknowledged record outlives every election as long as no majority
can do without all of the W - 1: W has to be a majority and one more. With W a majority the record
may be lost, here as in every log that is replicated by majorities."""

from dataclasses import replace

import pytest
from tests.simulation.plain import plain_scenario

from strandline.simulation.scenario import ProducerPlan, Scenario
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


@pytest.mark.simulation
def test_with_a_majority_alone_an_acknowledged_record_may_be_lost() -> None:
    """Not a promise: what falls short, and what an operator has to know of."""
    violation = run_scenario(scenario_with_a_liar(1, copies=3)).violation
    assert violation is not None
    assert violation.startswith("LeaderCompleteness: broker 1 leads group 1")
