"""The tier's state is one on all replicas, and retention removes only what it says is in buckets:
through crashes, power failures, cuts and lost disks.

Source: decision 0057; design section 10."""

from dataclasses import replace

import pytest

from strandline.model.ids import Index
from strandline.replication.replica.tier import ReplicaTier
from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.swarm.swarm import Outcome, run_scenario
from strandline.simulation.swarm.variations import with_tiering


def run(seed: int) -> Outcome:
    return run_scenario(with_tiering(Scenario.draw_groups(seed)))


def test_a_history_with_uploads() -> None:
    outcome = run(20)
    assert outcome.violation is None
    assert outcome.tally.upload_count > 5


@pytest.mark.simulation
@pytest.mark.parametrize("seed", range(4, 24))
def test_replicas_agree_and_remove_nothing_too_early(seed: int) -> None:
    assert run(seed).violation is None


@pytest.mark.simulation
def test_retention_before_the_upload_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReplicaTier, "covered", lambda self: None)
    monkeypatch.setattr(ReplicaTier, "removable_index", Index(1 << 40))
    found = [run_scenario(_retained(seed)).violation or "" for seed in range(3, 9)]
    assert any("NothingDeletedBeforeUploaded" in one for one in found)


def _retained(seed: int) -> Scenario:
    """The same with a total retention, which the mistake takes for the local one."""
    scenario = with_tiering(Scenario.draw_groups(seed))
    return replace(scenario, log=replace(scenario.log, retention_bytes=0))
