"""Brief histories keep every promise, have what they are for, and show what is planted.

More of them: `make brief SEED=1 RUNS=2000`."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.simulation import mutants
from tests.simulation.mutants import breaks_a_promise

from strandline.simulation.faults.kinds import (
    ANSWER_FAULTS,
    BUCKET_KINDS,
    DOMAIN_FAULTS,
    FAULT_KINDS,
    LASTING_LOSS,
    TARGETED_FAULTS,
)
from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.scenarios.scenario_file import load_scenario, with_faults
from strandline.simulation.swarm.brief_swarm import KIND_COUNTS, draw_brief
from strandline.simulation.swarm.families import Swarm
from strandline.simulation.swarm.swarm import Total, command, run_scenario

SEEDS = range(1, 101)
DRAWN = [draw_brief(seed) for seed in range(1, 1_001)]
HUNTED_SEEDS = range(1, 801)
"""Many times as many as it takes today: `python -m tests.simulation.hunt --blind brief`."""


@pytest.mark.simulation
def test_a_small_block_of_seeds_keeps_every_promise_and_is_written_to_and_struck() -> None:
    total = Total()
    for seed in SEEDS:
        outcome = run_scenario(draw_brief(seed))
        assert outcome.violation is None, command(seed, swarm=Swarm.BRIEF)
        total.add(outcome.tally)
    tally = total.tally
    assert tally.acknowledged_count > 20 * len(SEEDS)
    assert tally.election_count > len(SEEDS)
    assert sum(tally.fault_counts.values()) > 5 * len(SEEDS)


@pytest.mark.parametrize("seed", [9433, 10870, 18907663, 56500964, 81291692])
def test_what_once_broke_a_promise_keeps_all_of_them(seed: int) -> None:
    assert run_scenario(draw_brief(seed)).violation is None


def test_rest_begins_only_once_followers_have_told_how_far_they_have_compacted() -> None:
    """A long log, compacted in small slices: each of them is worth a message to the leader."""
    assert run_scenario(draw_brief(24547383)).violation is None


def test_a_seed_is_one_history() -> None:
    first, second = (run_scenario(draw_brief(3)) for _ in range(2))
    assert first.digest == second.digest
    assert len(first.trace) > 10


def test_they_are_brief_and_of_one_group() -> None:
    for scenario in DRAWN:
        assert len(scenario.groups) == 1 and not scenario.has_brokers
        assert scenario.active_ms < 1_200
        faults = scenario.plan_faults()
        assert [*faults] == sorted(faults, key=lambda one: one.at_ms)
        assert all(fault.at_ms < scenario.active_ms for fault in faults)
        assert len({fault.kind for fault in faults}) <= max(KIND_COUNTS)


def test_every_kind_of_fault_that_strikes_groups_is_drawn() -> None:
    drawn = {fault.kind for one in DRAWN for fault in one.plan_faults()}
    elsewhere = {*DOMAIN_FAULTS, *TARGETED_FAULTS, *ANSWER_FAULTS, *BUCKET_KINDS}
    elsewhere |= {LASTING_LOSS, "absence", "lost-objects", "full-cache"}
    assert drawn == FAULT_KINDS.keys() - elsewhere


@pytest.mark.parametrize(
    "holds",
    [
        lambda one: one.log.write_caching,
        lambda one: one.log.compacted,
        lambda one: one.scrub_bytes_per_s,
        lambda one: one.groups[0].observers,
        lambda one: len(one.groups[0].voters) == 5,
        lambda one: any(fault.at_ms < 300 for fault in one.plan_faults()),
        lambda one: any(plan.acks == 0 for plan in one.producers),
        lambda one: any(plan.acks == 1 for plan in one.producers),
    ],
    ids=["caching", "compacted", "scrub", "observers", "five", "early", "acks=0", "acks=1"],
)
def test_what_varies_is_drawn_for_some_and_not_for_all(
    holds: Callable[[Scenario], object],
) -> None:
    count = sum(bool(holds(one)) for one in DRAWN)
    assert 10 <= count <= len(DRAWN) // 2


def test_a_file_says_the_faults_of_such_a_seed(tmp_path: Path) -> None:
    """What --shrink writes."""
    drawn = draw_brief(7)
    path = tmp_path / "shrunk.toml"
    path.write_text(with_faults('seed = 7\nswarm = "brief"', drawn.plan_faults()[:1]))
    assert load_scenario(path) == replace(drawn, faults=drawn.plan_faults()[:1])


@pytest.mark.simulation
@pytest.mark.parametrize(
    "plant",
    [
        mutants.acknowledge_before_the_quorum,
        mutants.mix_up_the_answers,
        mutants.report_a_flush_that_was_not_made,
        mutants.truncate_what_matches,
        mutants.show_what_is_only_appended,
        mutants.forget_what_producers_wrote,
        mutants.forget_the_names_of_files,
        mutants.forget_what_was_sent,
    ],
    ids=lambda plant: plant.__name__,
)
def test_a_planted_mistake_is_found_by_seeds_that_know_nothing_of_it(
    plant: mutants.Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert any(breaks_a_promise(draw_brief(seed)) for seed in HUNTED_SEEDS)
