"""Random clusters keep every promise, a seed repeats, and what is planted is found.

More of them: `make simulate SEED=1 RUNS=1000`."""

import pytest
from tests.simulation import mutants
from tests.simulation.mutants import Plant

from strandline.simulation.swarm import run_seed

FALLBACK_SEEDS = range(1, 60)


@pytest.mark.simulation
@pytest.mark.parametrize("seed", range(1, 31))
def test_all_invariants_hold(seed: int) -> None:
    assert run_seed(seed).violation is None


@pytest.mark.parametrize("seed", range(1, 4))
def test_one_seed_is_one_history(seed: int) -> None:
    first, second = run_seed(seed), run_seed(seed)
    assert first.digest == second.digest
    assert len(first.trace) > 10


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("plant", "seed"),
    [
        (mutants.acknowledge_before_the_quorum, 2),
        (mutants.report_a_flush_that_was_not_made, 1),
        (mutants.answer_before_the_state_is_durable, 1),
        (mutants.follow_leaders_of_the_past, 12),
        (mutants.show_what_is_only_appended, 1),
        (mutants.forget_what_producers_wrote, 3),
        (mutants.forget_the_names_of_files, 13),
    ],
)
def test_a_planted_mistake_is_found(
    plant: Plant, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seed is a short cut, and may go stale."""
    plant(monkeypatch)
    for candidate in (seed, *FALLBACK_SEEDS):
        if run_seed(candidate).violation is not None:
            return
    pytest.fail("no seed finds it")
