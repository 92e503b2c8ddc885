"""What a disk that says "flushed" and keeps nothing can cost, and what an operator can do about it.

An acknowledgement waits for W copies. With one disk of the voters lying, W - 1 are real. A leader
is elected by a majority; so an acknowledged record outlives every election as long as no majority
can do without all of the W - 1: W has to be a majority and one more. With W a majority the record
may be lost, here as in every log that is replicated by majorities."""

from dataclasses import replace
from itertools import product

import pytest
from tests.simulation.plain_scenario import plain_scenario, started

from strandline.simulation.disk.file_image import CrashStyle
from strandline.simulation.faults.disk_faults import LOGS
from strandline.simulation.faults.fault_targets import cut
from strandline.simulation.scenarios.scenario import ProducerPlan, Scenario
from strandline.simulation.swarm.swarm import run_scenario

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


class Lie:
    """Five brokers; a record is acknowledged by `copies` of them: the leader, a follower whose disk
    lies, and as many honest ones; the others are cut off until it is."""

    def __init__(self, copies: int) -> None:
        self._world = world = started(
            replace(scenario_with_a_liar(1, copies=copies), fault_weights={})
        )
        for host in world.hosts.values():
            host.on_down = None
        (self._leader,) = world.cluster.leading_brokers()
        self._liar, *honest = [one for one in world.scenario.brokers if one != self._leader]
        self._with = honest[: copies - 2]

    def acknowledge(self, *, lacks: int = 0) -> int:
        """How many records are, with so many of those who should acknowledge cut off as well."""
        world = self._world
        reached = [self._leader, self._liar, *self._with[lacks:]]
        cut_off = [one for one in world.scenario.brokers if one not in reached]
        self._heal = cut(world.cluster, [*product(reached, cut_off), *product(cut_off, reached)])
        world.hosts[self._liar].disk.faults.lying_directory = LOGS
        for producer in world.producers:
            producer.start()
        world.cluster.advance(1_000)
        for producer in world.producers:
            producer.stop()
        return sum(producer.acknowledged_count for producer in world.producers)

    def violation(self) -> str | None:
        """What is violated where the liar loses what it has not flushed, and the leader and an
        honest one of those who acknowledged are gone with it for good."""
        world = self._world
        liar = world.hosts[self._liar]
        for dead in (self._leader, self._with[0]):
            world.hosts[dead].kill()
        liar.kill()
        liar.disk.crash(CrashStyle.LOSE_ALL)
        self._heal()
        liar.start()
        world.cluster.advance(10_000)
        assert world.cluster.is_over or world.cluster.leading_brokers()
        return world.checker.violation


@pytest.mark.simulation
def test_with_one_copy_more_a_record_outlives_the_liar_and_two_more() -> None:
    """For it is acknowledged by none fewer."""
    assert Lie(4).acknowledge(lacks=1) == 0
    lie = Lie(4)
    assert lie.acknowledge() > 10
    assert lie.violation() is None


@pytest.mark.simulation
def test_with_a_majority_alone_an_acknowledged_record_may_be_lost() -> None:
    """Not a promise: what falls short, and what an operator has to know of."""
    lie = Lie(3)
    assert lie.acknowledge() > 10
    violation = lie.violation()
    assert violation is not None
    assert violation.startswith("LeaderCompleteness: ")
