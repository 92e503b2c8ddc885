"""A batch that a producer asks for again is written once, whoever has got the log meanwhile.

A compaction that keeps only a producer's last batch is found by
`tests/storage/test_log_compaction.py::test_the_last_batches_of_a_producer_stay_though_empty`.

Source: KIP-98; decision 0009 (moving replicas)."""

from dataclasses import replace

import pytest
from tests.simulation.test_answers_to_earlier_processes import (
    number_calls_as_an_earlier_process_did,
)
from tests.simulation.test_tombstones import moved_from_who_is_down

from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.swarm.swarm import run_scenario


def scenario(patch: pytest.MonkeyPatch) -> Scenario:
    """Seed 31059, with more moves and deletions than it draws: the answer to a producer is lost,
    and its partition moves to a broker that knows the log as it was compacted. Calls are numbered
    as they were when it was found: their size decides when each of them comes."""
    number_calls_as_an_earlier_process_did(patch)
    return replace(
        moved_from_who_is_down(patch, 31059),
        key_count=30,
        tombstone_ratio=0.9,
        move_interval_ms=500,
        fault_weights={"absence": 1},
        active_ms=10_000,
    )


@pytest.mark.simulation
def test_a_leader_that_got_a_compacted_log_knows_what_was_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run_scenario(scenario(monkeypatch)).violation is None
