"""After a failed flush the machine is started anew, or the process alone, which reads what the page
cache holds: every promise is kept either way.

Source: ATC'20, "Can Applications Recover from fsync Failures?"."""

from dataclasses import replace
from itertools import islice

import pytest
from tests.simulation.mutants import trust_the_cache_with_logs, trust_the_cache_with_votes

from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.swarm.swarm import Outcome, run_scenario

FAULTS = {"failed-flush": 2, "power-failure": 1, "kill-leader": 1, "isolation": 1}
SEEDS = (8, 24, 50)
"""Histories of groups in which what the page cache alone holds is the end of something; which they
are may go stale."""
FALLBACK_SEEDS = range(51, 200)


def run(seed: int) -> Outcome:
    drawn = Scenario.draw(seed)
    return run_scenario(
        replace(drawn, fault_weights=FAULTS, fault_interval_ms=600, active_ms=10_000)
    )


@pytest.mark.simulation
@pytest.mark.parametrize("seed", SEEDS)
def test_no_promise_rests_on_what_the_page_cache_alone_holds(seed: int) -> None:
    outcome = run(seed)
    assert outcome.violation is None
    assert any("the page cache stays" in line for line in outcome.trace)
    assert not any("cannot start" in line and "damaged" in line for line in outcome.trace)


@pytest.mark.simulation
def test_where_the_cache_is_trusted_promises_are_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    trust_the_cache_with_logs(monkeypatch)
    trust_the_cache_with_votes(monkeypatch)
    broken = (seed for seed in (*SEEDS, *FALLBACK_SEEDS) if run(seed).violation is not None)
    assert len(list(islice(broken, 3))) == 3


@pytest.mark.simulation
def test_machines_and_processes_are_started_anew() -> None:
    told = [line for seed in SEEDS for line in run(seed).trace]
    for words in ("all of it kept", "half of it evicted", "will fail", "loses power"):
        assert any(words in line for line in told), words
