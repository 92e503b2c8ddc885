"""Sequences of idempotent producers wrap to 0 through every fault, and each record is written once.

Source: KIP-98; decision 0043."""

from dataclasses import replace

import pytest

from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.swarm.swarm import run_scenario
from strandline.storage.producers.producers import SEQUENCE_COUNT

RECORDS_BEFORE = 20
"""Each producer begins so many records before the wrap."""


@pytest.mark.simulation
@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("is_whole", [False, True])
def test_sequences_wrap_through_every_fault(seed: int, is_whole: bool) -> None:
    drawn = Scenario.draw(seed).whole() if is_whole else Scenario.draw_groups(seed)
    first = SEQUENCE_COUNT - RECORDS_BEFORE
    producers = tuple(
        replace(one, acks=-1, is_idempotent=True, first_sequence=first) for one in drawn.producers
    )
    outcome = run_scenario(replace(drawn, producers=producers))
    assert outcome.violation is None
    assert outcome.tally.acknowledged_count > RECORDS_BEFORE
