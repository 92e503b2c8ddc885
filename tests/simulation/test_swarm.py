"""Random clusters keep every promise, a seed repeats, and what is planted is found.

More of them: `make simulate SEED=1 RUNS=1000`."""

import pytest
from tests.simulation.mutants import MUTANTS, Mutant

from strandline.simulation.swarm import run_seed

FALLBACK_SEEDS = range(1, 60)
"""A mutant's own seed is a short cut, and may go stale: `python -m tests.simulation.hunt`."""


def name_of(mutant: Mutant) -> str:
    return mutant.plant.__name__


@pytest.mark.simulation
@pytest.mark.parametrize("seed", range(1, 25))
def test_all_invariants_hold(seed: int) -> None:
    assert run_seed(seed).violation is None


@pytest.mark.parametrize("seed", range(1, 4))
def test_one_seed_is_one_history(seed: int) -> None:
    first, second = run_seed(seed), run_seed(seed)
    assert first.digest == second.digest
    assert len(first.trace) > 10


@pytest.mark.simulation
@pytest.mark.parametrize("mutant", MUTANTS, ids=name_of)
def test_a_planted_mistake_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.plant(monkeypatch)
    assert any(mutant.is_found_by(seed) for seed in (mutant.seed, *FALLBACK_SEEDS))


@pytest.mark.simulation
@pytest.mark.parametrize("mutant", MUTANTS, ids=name_of)
def test_without_the_mistake_the_same_run_keeps_every_promise(mutant: Mutant) -> None:
    assert not mutant.is_found_by(mutant.seed)
