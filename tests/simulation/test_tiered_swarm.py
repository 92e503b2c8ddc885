"""Old records leave for buckets that fail: every promise holds, and what is planted is found.

More of them: `python -m strandline.simulation --swarm tiered --seed 1 --runs 1000`.
Source: decision 0058."""

import pytest
from tests.simulation.mutants import Plant
from tests.simulation.tiered_mutants import MUTANTS

from strandline.simulation.faults.kinds import BUCKET_KINDS
from strandline.simulation.swarm.families import Swarm
from strandline.simulation.swarm.swarm import command, run_scenario
from strandline.simulation.swarm.tiered_swarm import draw_tiered

SEEDS = (*range(1, 25), 5093)
"""In 5093 a follower begins anew where its leader's log is about to begin."""


@pytest.mark.simulation
@pytest.mark.parametrize("seed", SEEDS)
def test_every_promise_holds_where_buckets_fail(seed: int) -> None:
    outcome = run_scenario(draw_tiered(seed))
    assert outcome.violation is None, command(seed, swarm=Swarm.TIERED)


@pytest.mark.simulation
@pytest.mark.parametrize("plant", MUTANTS, ids=lambda one: one.__name__)
def test_a_planted_mistake_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    promise, seed = MUTANTS[plant]
    plant(monkeypatch)
    violation = run_scenario(draw_tiered(seed)).violation
    assert violation is not None and violation.startswith(promise)


def test_the_seeds_strike_buckets_in_every_way() -> None:
    drawn = [set(draw_tiered(seed).fault_weights) for seed in range(1, 60)]
    assert set().union(*drawn) >= set(BUCKET_KINDS)
    assert any(not kinds & set(BUCKET_KINDS) for kinds in drawn)
