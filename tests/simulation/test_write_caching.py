"""With cached writes acks=all survives every fault but the loss of power: what a quorum has
written, no kill, pause or cut takes away.

Source: Redpanda RFC 20220119 (relaxed consistency); `write.caching`."""

from dataclasses import replace

import pytest

from strandline.simulation.invariants.invariants import NoAcknowledgedRecordLost
from strandline.simulation.invariants.superseding import Superseding
from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.swarm.swarm import Outcome, run_scenario

FAULTS = (
    "kill",
    "kill-leader",
    "kill-all",
    "pause",
    "isolation",
    "split",
    "mute",
    "reset",
    "lossy-link",
    "slow-disk",
)
FLUSH_MS = 2_000
SEEDS = range(1, 17)


def run_cached(seed: int, *faults: str) -> Outcome:
    scenario = Scenario.draw(seed).of_groups()
    return run_scenario(
        replace(
            scenario,
            log=replace(scenario.log, write_caching=True, flush_ms=FLUSH_MS),
            fault_weights=dict.fromkeys(faults, 1),
        )
    )


@pytest.mark.simulation
def test_nothing_is_lost_while_the_power_lasts() -> None:
    outcomes = [run_cached(seed, *FAULTS) for seed in SEEDS]
    assert [outcome.violation for outcome in outcomes] == [None] * len(SEEDS)
    assert sum(outcome.tally.acknowledged_count for outcome in outcomes) > 1_000
    assert sum(outcome.tally.election_count for outcome in outcomes) > 20


@pytest.mark.simulation
def test_a_failure_of_all_power_takes_what_was_not_flushed_as_the_docs_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Held against what acks=all promises elsewhere."""
    honest = NoAcknowledgedRecordLost.__init__

    def init(self: NoAcknowledgedRecordLost, superseding: Superseding, *, may_lose: bool) -> None:
        assert may_lose
        honest(self, superseding)

    monkeypatch.setattr(NoAcknowledgedRecordLost, "__init__", init)
    outcomes = (run_cached(seed, "total-power-failure") for seed in range(16, 200))
    assert any("NoAcknowledgedRecordLost" in (one.violation or "") for one in outcomes)
