"""Relays are struck in the middle of their work: every promise holds. Source: decision 0034."""

import pytest
from tests.simulation.relay_swarm import BEGINNINGS, run_relays

SEEDS = (*range(1, 25), 30957)
"""The last: what was refused had brought the marks, and what was handed on late made it complete:
nobody told them again."""


@pytest.mark.simulation
@pytest.mark.parametrize("seed", SEEDS)
def test_every_promise_holds_where_relays_are_struck(seed: int) -> None:
    """`python -m tests.simulation.relay_swarm 1 4000` runs as many."""
    outcome = run_relays(seed)
    assert outcome.violation is None


@pytest.mark.simulation
def test_relays_are_struck() -> None:
    target = [kind for seed in SEEDS for kind in run_relays(seed).tally.fault_counts]
    assert len(set(target) & set(BEGINNINGS)) > len(BEGINNINGS) // 2
