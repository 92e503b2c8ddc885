"""What holds of every scenario that is written in a file, whichever test runs it.

Why:    some take minutes of computing. Where a test of its own looks into a run, what holds of all
        is judged of the same run.
How:    `test_scenario_files.py` runs those that no test here names in `kept("...")`: one whose test
        has gone is run there again."""

import logging
import re
from pathlib import Path

from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.scenarios.scenario_file import load_scenario
from strandline.simulation.swarm.swarm import Outcome, run_scenario

SCENARIOS = Path(__file__).parent / "scenarios"
NAMED = re.compile(r'kept\("([a-z-]+)"\)')


def run_by_no_other_test() -> list[str]:
    """Names of scenarios of which nothing is said but what holds of all."""
    sources = [path.read_text() for path in Path(__file__).parent.glob("test_*.py")]
    named = {name for source in sources for name in NAMED.findall(source)}
    return sorted({path.stem for path in SCENARIOS.glob("*.toml")} - named)


def scenario_of(name: str) -> Scenario:
    """The scenario in the file of this name, without its suffix."""
    return load_scenario(SCENARIOS / f"{name}.toml")


def kept(name: str) -> Outcome:
    """Runs that scenario, whose trace tells what brokers log too: every promise holds, each planned
    fault strikes, and whatever clients are said to do is done."""
    scenario = scenario_of(name)
    outcome = run_scenario(scenario, log_level=logging.INFO)
    assert outcome.violation is None
    tally = outcome.tally
    assert sum(tally.fault_counts.values()) == len(scenario.plan_faults())
    assert tally.acknowledged_count > 0
    assert bool(tally.superseded_count) is bool(scenario.key_count)
    assert bool(tally.table_count) is bool(scenario.tombstone_ratio)
    assert bool(tally.deletion_count) is bool(scenario.delete_interval_ms)
    assert scenario.move_interval_ms == 0 or tally.move_count > 0
    return outcome
