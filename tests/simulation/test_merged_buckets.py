"""Objects of buckets are merged all the time, in histories with every fault: every promise holds.

Source: decision 0066."""

import pytest

from strandline.broker.tiering import rewrites
from strandline.simulation.swarm.swarm import run_scenario
from strandline.simulation.swarm.tiered_swarm import draw_tiered
from strandline.storage.config import LogConfig
from strandline.tiered.state import bucket
from strandline.tiered.state.bucket import BucketState
from strandline.tiered.state.commands import Replace
from strandline.tiered.state.transitions import Refusal
from strandline.tiered.upload import merging
from strandline.tiered.upload.merging import RunLimits


@pytest.fixture
def replaced(monkeypatch: pytest.MonkeyPatch) -> list[Replace]:
    """Two neighbours are enough, and the target has room for many segments. What is replaced."""
    limits_of, apply = rewrites._limits_of, bucket._APPLY[Replace]
    applied: list[Replace] = []

    def more(config: LogConfig, object_bytes_max: int) -> RunLimits:
        return limits_of(config, object_bytes_max)._replace(bytes_max=20 * config.segment_bytes)

    def note(self: BucketState, command: Replace, log_end: int) -> Refusal | None:
        refusal = apply(self, command, log_end)  # type: ignore[arg-type]
        if refusal is None:
            applied.append(command)
        return refusal

    monkeypatch.setattr(merging, "RUN_COUNT_MIN", 2)
    monkeypatch.setattr(merging, "SMALL_SHARE", 2)
    monkeypatch.setattr(merging, "GROWTH_MIN", 1.2)
    monkeypatch.setattr(rewrites, "RETRY_MS_MIN", 200)
    monkeypatch.setattr(rewrites, "_limits_of", more)
    monkeypatch.setitem(bucket._APPLY, Replace, note)  # type: ignore[arg-type]
    return applied


SEEDS = range(1, 9)


@pytest.mark.simulation
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.usefixtures("replaced")
def test_every_promise_holds_while_objects_are_merged(seed: int) -> None:
    assert run_scenario(draw_tiered(seed)).violation is None


@pytest.mark.simulation
def test_objects_are_merged_in_these_histories(replaced: list[Replace]) -> None:
    """In most: a small history has no two neighbours in a bucket."""
    for seed in SEEDS:
        run_scenario(draw_tiered(seed))
        if replaced:
            return
    raise AssertionError("nothing was merged")
