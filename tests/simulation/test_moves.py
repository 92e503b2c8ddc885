"""Replicas move through every fault; mistakes in how they move are found.

Source: docs/decisions/0009-moving-replicas.md; design section 10."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from strandline.broker.groups.moving import Moving
from strandline.controller.commands import ReportVoters, RequestVoters
from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId, GroupId, Index
from strandline.raft.group.configuration import Configuration
from strandline.simulation.invariants.facts import ConfigurationCommitted, ReplicaRemoved
from strandline.simulation.invariants.invariants import Invariant, InvariantError
from strandline.simulation.invariants.removals import OneGrantPerVersion, RemovedWhereStable
from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.swarm.swarm import Outcome, run_scenario, run_seed

SEEDS = (1, 2, 3, 5, 8, 13)
INTERVAL_MS = 150
ACTIVE_MS = 6_000
FAULTS = (
    "kill", "kill-leader", "power-failure", "leader-power-failure", "total-power-failure",
    "isolation", "split", "mute", "death-in-the-middle", "late-delivery", "leadership-transfer",
)  # fmt: skip


def run_with_moves(seed: int) -> Outcome:
    """The whole brokers of a seed, and somebody who moves their replicas."""
    scenario = replace(
        Scenario.draw(seed).whole(),
        group_consumer_count=0,
        move_interval_ms=INTERVAL_MS,
        active_ms=ACTIVE_MS,
        fault_weights=dict.fromkeys(FAULTS, 1),
        fault_interval_ms=600,
    )
    return run_scenario(scenario)


@pytest.mark.simulation
def test_replicas_move_through_faults() -> None:
    outcomes = [run_with_moves(seed) for seed in SEEDS]
    assert [outcome.violation for outcome in outcomes] == [None] * len(SEEDS)
    assert sum(outcome.tally.move_count for outcome in outcomes) > 20
    assert sum(outcome.tally.election_count for outcome in outcomes) > 20


def test_who_asks_for_a_move_may_hear_that_the_controllers_disk_is_full() -> None:
    assert run_seed(259).violation is None


# ---- planted mistakes --------------------------------------------------------------------------


def without_a_grant(patch: pytest.MonkeyPatch) -> None:
    """The leader takes the target for granted, and tells nobody."""
    step = Moving._step

    def plunge(self: Moving, replica: object, partition: Partition, min_insync: int) -> bool:
        if partition.target and not partition.pending:
            partition = replace(partition, pending=partition.target)
        return step(self, replica, partition, min_insync)  # type: ignore[arg-type]

    patch.setattr(Moving, "_step", plunge)


def remove_what_is_not_wanted_at_once(patch: pytest.MonkeyPatch) -> None:
    """Who is not in the target lets go, whoever needs it."""
    patch.setattr(Partition, "hosts", property(lambda self: self.target or self.replicas))


def report_what_is_only_begun(patch: pytest.MonkeyPatch) -> None:
    """The grant itself is reported as stable."""
    ask = Moving._ask

    def hurry(self: Moving, command: RequestVoters | ReportVoters) -> None:
        ask(self, command)
        partition = self._controller.cluster.groups[command.group]
        if partition.pending:
            report = ReportVoters(command.group, partition.version + 1, partition.pending)
            ask(self, report)

    def step(self: Moving, replica: object, partition: Partition, min_insync: int) -> bool:
        if partition.pending:
            hurry(self, ReportVoters(partition.group, partition.version + 1, partition.pending))
        return honest(self, replica, partition, min_insync)  # type: ignore[arg-type]

    honest = Moving._step
    patch.setattr(Moving, "_step", step)


@pytest.mark.simulation
@pytest.mark.parametrize(
    "plant", [without_a_grant, remove_what_is_not_wanted_at_once, report_what_is_only_begun]
)
def test_a_planted_mistake_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert any(run_with_moves(seed).violation is not None for seed in SEEDS)


# ---- the invariants themselves -----------------------------------------------------------------

GROUP = GroupId(1)


def ids(*numbers: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, numbers))


def committed(index: int, voters: Sequence[int], version: int = 0) -> ConfigurationCommitted:
    configuration = Configuration(ids(*voters), version=version)
    return ConfigurationCommitted(GROUP, Index(index), configuration)


def removed(broker: int) -> ReplicaRemoved:
    return ReplicaRemoved(GROUP, BrokerId(broker), 1, ids(1, 2, 3))


def judge(invariant: Invariant, *facts: ConfigurationCommitted | ReplicaRemoved) -> None:
    for fact in facts:
        if isinstance(fact, ReplicaRemoved):
            invariant.on_replica_removed(fact)
        else:
            invariant.on_configuration_committed(fact)


def test_who_votes_in_the_last_committed_configuration_removes_nothing() -> None:
    judge(RemovedWhereStable(), removed(4))
    judge(RemovedWhereStable(), committed(5, (1, 2, 4), 1), committed(2, (1, 2, 3)), removed(3))
    for facts in (
        (removed(3),),
        (committed(2, (1, 2, 4)), committed(5, (1, 2, 3)), removed(3)),
        (committed(5, (1, 2, 4), 1), removed(4)),
    ):
        with pytest.raises(InvariantError, match="RemovedWhereStable"):
            judge(RemovedWhereStable(), *facts)


def test_one_version_has_one_set_of_voters() -> None:
    judge(OneGrantPerVersion(), committed(1, (1, 2, 3)), committed(4, (3, 2, 1)))
    with pytest.raises(InvariantError, match="OneGrantPerVersion"):
        judge(OneGrantPerVersion(), committed(1, (1, 2), 1), committed(4, (1, 3), 1))
