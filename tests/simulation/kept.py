"""What holds of every scenario that is written in a file, whichever test runs it.

Why:    some take minutes of computing. Where a test of its own looks into a run, what holds of all
        is judged of the same run, and none runs twice.
How:    `test_scenario_files.py` runs those that no test of their own does."""

import logging
from collections.abc import Mapping
from pathlib import Path

from strandline.simulation.scenario import Scenario
from strandline.simulation.scenario_file import load_scenario
from strandline.simulation.swarm import Outcome, run_scenario
from strandline.simulation.tally import Tally

SCENARIOS = Path(__file__).parent / "scenarios"
RUN_ELSEWHERE: Mapping[str, str] = {
    "cable-between-two-cities-cut": "test_cut_cables.py",
    "decommission-under-load": "test_balancing.py",
    "disks-fill-under-load": "test_balancing.py",
    "flapping-broker": "test_balancing.py",
    "half-an-hour-on-the-worst-network": "test_balancing.py",
    "half-an-hour-without-faults": "test_balancing.py",
    "label-changed-at-run-time": "test_balancing.py",
    "lost-for-good-and-declared": "test_declared_losses.py",
    "lost-voters-are-replaced-while-others-vote": "test_balancing.py",
    "maintenance-under-load": "test_balancing.py",
    "observer-stands-in-while-a-region-is-lost": "test_promotion.py",
    "observers-stand-in-for-a-region": "test_promotion.py",
    "observers-through-faults": "test_observers.py",
    "region-down-for-ten-minutes": "test_balancing.py",
    "region-lost-and-returned": "test_balancing.py",
    "region-released-best-effort-and-back": "test_balancing.py",
    "zone-down-for-ten-minutes": "test_balancing.py",
    "zone-held-by-hand": "test_balancing.py",
}
"""Which module's test runs these; all others have nothing said of them but what holds of all."""


def scenario_of(name: str) -> Scenario:
    """The scenario in the file of this name, without its suffix."""
    return load_scenario(SCENARIOS / f"{name}.toml")


def kept(name: str) -> Outcome:
    """Runs that scenario, and has the trace tell what its brokers log."""
    scenario = scenario_of(name)
    outcome = run_scenario(scenario, log_level=logging.INFO)
    assert outcome.violation is None
    assert_all_happened(scenario, outcome.tally)
    return outcome


def assert_all_happened(scenario: Scenario, tally: Tally) -> None:
    """Each planned fault struck, and whatever the scenario says that clients do was done."""
    assert sum(tally.fault_counts.values()) == len(scenario.plan_faults())
    assert tally.acknowledged_count > 0
    assert bool(tally.superseded_count) is bool(scenario.key_count)
    assert bool(tally.table_count) is bool(scenario.tombstone_ratio)
    assert bool(tally.deletion_count) is bool(scenario.delete_interval_ms)
    assert scenario.move_interval_ms == 0 or tally.move_count > 0
