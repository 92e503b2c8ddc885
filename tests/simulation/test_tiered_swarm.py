"""Old records leave for buckets that fail: every promise holds, and what is planted is found.

More of them: `python -m strandline.simulation --swarm tiered --seed 1 --runs 1000`.
Source: decision 0058."""

import random
from collections import Counter

import pytest
from tests.simulation.mutants import Plant
from tests.simulation.tiered_mutants import MUTANTS, SEEDS, found

from strandline.simulation.faults.kinds import BUCKET_KINDS
from strandline.simulation.swarm.families import Swarm
from strandline.simulation.swarm.swarm import command, run_scenario
from strandline.simulation.swarm.tiered_mixes import MIXES, draw_mixes
from strandline.simulation.swarm.tiered_swarm import draw_tiered


@pytest.mark.simulation
@pytest.mark.parametrize("seed", range(1, 25))
def test_every_promise_holds_where_buckets_fail(seed: int) -> None:
    outcome = run_scenario(draw_tiered(seed))
    assert outcome.violation is None, command(seed, swarm=Swarm.TIERED)


@pytest.mark.simulation
@pytest.mark.parametrize("plant", MUTANTS, ids=lambda one: one.__name__)
def test_a_planted_mistake_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    promise, _ = MUTANTS[plant]
    plant(monkeypatch)
    assert any(found(plant, seed).startswith(promise) for seed in SEEDS)


def test_the_seeds_strike_buckets_in_every_way() -> None:
    drawn = [set(draw_tiered(seed).fault_weights) for seed in range(1, 60)]
    assert set().union(*drawn) >= set(BUCKET_KINDS)
    assert any(not kinds & set(BUCKET_KINDS) for kinds in drawn)


def test_seeds_draw_every_subject_and_two_at_most() -> None:
    drawn = [draw_mixes(random.Random(seed)) for seed in range(200)]
    counts = Counter(name for names in drawn for name in names)
    assert set(counts) == set(MIXES)
    assert min(counts.values()) > 10
    assert {len(names) for names in drawn} == {0, 1, 2}
    assert not any({"lost disks", "rot"} <= set(names) for names in drawn)


def test_most_seeds_are_small_and_close_segments() -> None:
    drawn = [draw_tiered(seed) for seed in range(1, 200)]
    small = [one for one in drawn if len(one.groups) == 1 and len(one.regions) == 3]
    assert len(drawn) // 5 * 4 < len(small) < len(drawn)
    assert all(one.log.segment_bytes >= 1_024 and one.log.remote_storage for one in drawn)


def test_a_group_without_a_leader_at_the_end_keeps_its_objects() -> None:
    assert run_scenario(draw_tiered(65378170)).violation is None


def test_total_retention_by_size_takes_what_is_older_than_what_a_log_keeps() -> None:
    """Objects with older records went live between the decision and the removal."""
    assert run_scenario(draw_tiered(54247235)).violation is None


def test_less_may_go_while_a_prefix_that_was_dropped_is_being_removed() -> None:
    """An object went live meanwhile, so that the total retention may not take so much any more."""
    assert run_scenario(draw_tiered(67484006)).violation is None
