"""Clusters of cores under random schedules; see `tests.raft.cluster` for what is simulated.

STRANDLINE_RAFT_SCHEDULES=100000 runs as many, and a quarter of that on leadership handed over, and
others on votes that were promised for it, on entries that are lent or handed on, and on write
quorums;
STRANDLINE_RAFT_SEED=7 runs that one alone."""

import os

import pytest
from tests.raft.cluster.character import (
    DELEGATING_SEED,
    HANDING_OVER_SEED,
    LOWERING_SEED,
    PEER_CATCHUP_SEED,
    RELAYING_SEED,
    focus_of,
)
from tests.raft.cluster.mutants import MUTANTS, Mutant
from tests.raft.cluster.schedule import Schedule

SCHEDULE_COUNT = int(os.environ.get("STRANDLINE_RAFT_SCHEDULES", "2000"))
CHUNK_COUNT = 20
MUTANT_SEED_COUNT = 300

# Schedules that once found a mistake in the core; each mistake is kept as a mutant as well.
REGRESSION_SEEDS = sorted(
    mutant.seed for mutant in MUTANTS.values() if mutant.name in (
        "hint_taken_for_a_match",
        "emptied_log_forgets_its_epoch",
        "rejoin_needs_the_write_quorum",
        "rejoins_at_the_first_commit_heard",
    )
)  # fmt: skip


def run(seed: int) -> None:
    """Run one schedule; a failure says how to see it again."""
    try:
        Schedule(seed).run()
    except Exception as error:
        command = f"python -m tests.raft.cluster.replay {seed}"
        error.add_note(f"seed {seed} ({focus_of(seed)}); replay: {command}")
        raise


@pytest.mark.simulation
@pytest.mark.parametrize("chunk", range(CHUNK_COUNT))
def test_all_invariants_hold_and_the_group_gets_on(chunk: int) -> None:
    alone = os.environ.get("STRANDLINE_RAFT_SEED")
    if alone:
        run(int(alone))
        return
    for seed in range(chunk, SCHEDULE_COUNT, CHUNK_COUNT):
        run(seed)
    for number in range(chunk, SCHEDULE_COUNT // 4, CHUNK_COUNT):
        run(HANDING_OVER_SEED + number)
        run(DELEGATING_SEED + number)
        run(PEER_CATCHUP_SEED + number)
        run(LOWERING_SEED + number)
        run(RELAYING_SEED + number)


@pytest.mark.parametrize("seed", REGRESSION_SEEDS)
def test_schedules_that_found_a_mistake_pass(seed: int) -> None:
    run(seed)


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=list(MUTANTS))
def test_a_planted_mistake_is_found(mutant: Mutant) -> None:
    """Its seed is a short cut, and may go stale: `python -m tests.raft.cluster.hunt NAME`."""
    with mutant.planted():
        for seed in (mutant.seed, *range(MUTANT_SEED_COUNT)):
            try:
                Schedule(seed).run()
            except (AssertionError, IndexError):
                return
    pytest.fail(f"no schedule finds {mutant.name}; look for another seed")


@pytest.mark.parametrize("seed", range(8))
def test_one_seed_is_one_trace(seed: int) -> None:
    traces: list[list[str]] = [[], []]
    for trace in traces:
        Schedule(seed, trace=trace.append).run()
    assert traces[0] == traces[1]
    assert len(traces[0]) > 100
