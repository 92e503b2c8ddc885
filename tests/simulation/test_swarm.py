"""Random clusters keep every promise, a seed repeats, and what is planted is found.

More of them: `make simulate SEED=1 RUNS=1000`."""

import multiprocessing
import os
import signal
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import pytest
from tests.simulation.mutants import MUTANTS, Mutant, is_of_the_product
from tests.simulation.plain_scenario import plain_scenario

from strandline.simulation.scenarios.scenario import PlannedFault, Scenario
from strandline.simulation.swarm.swarm import Total, command, run_all, run_scenario, run_seed

FALLBACK_SEEDS = range(1, 400)
"""A mutant's own seed is a short cut, and may go stale: `python -m tests.simulation.hunt`."""


def name_of(mutant: Mutant) -> str:
    return mutant.plant.__name__


@pytest.mark.simulation
@pytest.mark.parametrize("seed", range(1, 25))
def test_all_invariants_hold(seed: int) -> None:
    assert run_seed(seed).violation is None, command(seed)


@pytest.mark.parametrize("seed", range(1, 4))
def test_one_seed_is_one_history(seed: int) -> None:
    first, second = run_seed(seed), run_seed(seed)
    assert first.digest == second.digest
    assert len(first.trace) > 10


@pytest.mark.parametrize("seed", [2, 31])
def test_one_seed_is_one_history_in_every_process(seed: int) -> None:
    """Where a set of names is walked, its order is that process's own."""
    traces = [
        subprocess.run(
            [sys.executable, "-m", "strandline.simulation", "--seed", str(seed), "--trace"],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "4242")
    ]
    assert traces[0] == traces[1]
    assert traces[0].count(b"\n") > 10


def test_a_fault_that_strikes_nothing_is_not_counted() -> None:
    faults = (PlannedFault(0, "kill-leader", 50, 1), PlannedFault(1, "pause", 50, 1))
    tally = run_scenario(replace(plain_scenario(), faults=faults)).tally
    assert tally.fault_counts == {"pause": 1}
    assert tally.void_fault_count == 1
    total = Total()
    total.add(tally)
    assert total.lines()[-1] == "1 faults: 1 pause; 1 more found nothing to strike"


def test_seeds_that_run_side_by_side_end_in_order_and_as_they_end_alone() -> None:
    groups = [one for one in map(Scenario.draw, range(1, 20)) if not one.has_brokers][:6]
    alone, together = (
        [
            (outcome.seed, outcome.digest)
            for outcome in run_all(groups, processes=processes, log_level=40, keeps_traces=False)
        ]
        for processes in (1, 3)
    )
    assert alone == together
    assert [seed for seed, _ in alone] == [one.seed for one in groups]


def test_runs_that_nobody_needs_end_whatever_sigterm_does_in_this_process() -> None:
    """Else this waits, until pytest ends it."""
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        planned = [plain_scenario()] * 4
        with closing(run_all(planned, processes=2, log_level=40, keeps_traces=False)) as outcomes:
            assert next(outcomes).violation is None
    finally:
        signal.signal(signal.SIGTERM, before)
        for child in multiprocessing.active_children():  # Else pytest waits for them, too.
            child.kill()


@pytest.mark.simulation
@pytest.mark.parametrize("mutant", MUTANTS, ids=name_of)
def test_a_planted_mistake_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.plant(monkeypatch)
    assert any(mutant.is_found_by(seed) for seed in (mutant.seed, *FALLBACK_SEEDS))


@pytest.mark.simulation
@pytest.mark.parametrize("mutant", MUTANTS, ids=name_of)
def test_without_the_mistake_the_same_run_keeps_every_promise(mutant: Mutant) -> None:
    scenario = mutant.scenario(mutant.seed)
    assert scenario is not None
    assert run_scenario(scenario).violation is None


def test_a_mistake_that_does_not_fit_the_program_is_not_taken_for_found() -> None:
    assert not is_of_the_product(None)
    assert is_of_the_product("LogMatching: group 1")
    assert is_of_the_product("NoUnexpectedError: AssertionError('two leaders') at appends.py:1")
    assert not is_of_the_product("NoUnexpectedError: TypeError('sees_next') at segment.py:1")
