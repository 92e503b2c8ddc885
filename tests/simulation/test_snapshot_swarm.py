"""Histories in which brokers take, keep, lose and send snapshots keep every promise.

More of them: `python -m strandline.simulation --swarm snapshots --seed 1 --runs 500`."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.simulation.mutants import Plant, breaks_a_promise

from strandline.broker.coordinators.controller_host import ControllerHost
from strandline.broker.snapshots.files import SnapshotFiles, SnapshotId
from strandline.broker.snapshots.snapshots import ControllerSnapshots
from strandline.broker.snapshots.taking import Taking
from strandline.controller.snapshots.format import Head
from strandline.controller.state import ControllerState
from strandline.model.ids import Offset
from strandline.raft.core import Raft
from strandline.raft.messages import ResetRequest
from strandline.replication.replica import driver
from strandline.replication.replica.replica import Replica
from strandline.replication.replica.snapshot_gate import SnapshotGate
from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.swarm.families import Swarm
from strandline.simulation.swarm.snapshot_swarm import draw_snapshots
from strandline.simulation.swarm.swarm import command, run_scenario

SEEDS = range(1, 5)
HUNTED_SEEDS = range(1, 60)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_small_block_of_seeds_keeps_every_promise(seed: int) -> None:
    outcome = run_scenario(draw_snapshots(seed))
    assert outcome.violation is None, command(seed, swarm=Swarm.SNAPSHOTS)


def test_disks_are_lost_in_some_and_replicas_move_in_others() -> None:
    drawn = [draw_snapshots(seed) for seed in range(1, 200)]
    assert all(one.has_brokers and one.snapshot_bytes for one in drawn)
    lost = [one for one in drawn if "lost-disk" in one.fault_weights]
    moved = [one for one in drawn if one.move_interval_ms]
    assert 50 < len(lost) < 150
    assert len(moved) > 10
    assert not any(one.move_interval_ms for one in lost)


def cut_before_the_snapshot_is_durable(patch: pytest.MonkeyPatch) -> None:
    """The log is cut once the bytes of a snapshot are made."""
    honest = ControllerSnapshots._on_taken

    def on_taken(self: ControllerSnapshots, snapshot: SnapshotId, data: bytes) -> None:
        assert self._replica is not None
        self._replica.on_snapshot(snapshot.offset)
        self._replica.clean()
        honest(self, snapshot, data)

    patch.setattr(ControllerSnapshots, "_on_taken", on_taken)


def name_a_snapshot_before_it_is_flushed(patch: pytest.MonkeyPatch) -> None:
    """The names of snapshots get to the disk before their bytes."""

    def finish(
        self: SnapshotFiles,
        snapshot: SnapshotId,
        file: object,
        name: str,
        done: Callable[[OSError | None], None],
    ) -> None:
        done(self._name(snapshot, name))

    patch.setattr(SnapshotFiles, "_finish", finish)


def say_a_later_offset(patch: pytest.MonkeyPatch) -> None:
    """A snapshot says that it has one record more than it has."""
    honest = Taking.begin

    def begin(
        self: Taking,
        state: ControllerState,
        head: Head,
        done: Callable[[SnapshotId, bytes], None],
    ) -> None:
        later = Head(Offset(head.offset + 1), head.epoch, head.cluster_id, head.taken_ms)
        honest(self, state, later, done)

    patch.setattr(Taking, "begin", begin)


def begin_a_log_without_the_snapshot(patch: pytest.MonkeyPatch) -> None:
    """A log begins where its leader says, and what is left of it is applied to the old state."""

    def lacks_snapshot(gate: SnapshotGate, request: ResetRequest, raft: Raft) -> bool:
        return False

    honest = ControllerHost._apply_visible

    def apply_visible(self: ControllerHost, replica: Replica) -> None:
        self._applied = max(self._applied, replica.log.start_offset)
        honest(self, replica)

    patch.setattr(driver, "lacks_snapshot", lacks_snapshot)
    patch.setattr(ControllerHost, "_apply_visible", apply_visible)


PLANTS: dict[Plant, int] = {
    cut_before_the_snapshot_is_durable: 7,
    name_a_snapshot_before_it_is_flushed: 7,
    say_a_later_offset: 1,
    begin_a_log_without_the_snapshot: 1,
}
"""{mistake: a seed that is a short cut, and may go stale}"""


def hunted(plant: Plant, seed: int) -> Scenario:
    """The scenario in which a mistake is hunted."""
    drawn = draw_snapshots(seed)
    if plant is not cut_before_the_snapshot_is_durable:
        return drawn
    # The power has to fail within one flush.
    weights = {"total-power-failure": 1}
    return replace(drawn, flush_us=(20_000, 40_000), fault_weights=weights, fault_interval_ms=250)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_mistake_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    seeds = [PLANTS[plant], *HUNTED_SEEDS]
    assert any(breaks_a_promise(hunted(plant, seed)) for seed in seeds)


def test_without_the_mistake_these_scenarios_keep_every_promise() -> None:
    seed = PLANTS[cut_before_the_snapshot_is_durable]
    outcome = run_scenario(hunted(cut_before_the_snapshot_is_durable, seed))
    assert outcome.violation is None
