"""A broker gets a removed replica again: it does not remember what it acknowledged.

Source: docs/decisions/0009-moving-replicas.md; `raft.follower.rejoin`."""

import random
from collections.abc import Iterator

import pytest
from tests.broker.cluster_world import DATA_DIRECTORY
from tests.broker.moving_world import TOPIC, MovingWorld, moving_world

from strandline.controller.state import ControllerState
from strandline.model.ids import BrokerId
from strandline.replication.host.removal import ReplicaRemoval
from strandline.simulation.disk.disk import SimDisk
from strandline.simulation.disk.file_image import CrashStyle

A, B, X, D = 1, 4, 5, 2


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingWorld]:
    """Voters A, B and X; A and D are of the controller, too."""
    with moving_world(monkeypatch, (A, B, X)) as made:
        yield made


def cut(world: MovingWorld, one: int, other: int) -> None:
    """Neither hears the other."""
    world.fabric.cut(BrokerId(one), BrokerId(other))
    world.fabric.cut(BrokerId(other), BrokerId(one))


def heal(world: MovingWorld, one: int, other: int) -> None:
    """They hear each other again."""
    world.fabric.heal(BrokerId(one), BrokerId(other))
    world.fabric.heal(BrokerId(other), BrokerId(one))


def remove_x(world: MovingWorld) -> None:
    """A, B, X become A, B, D; B knows nothing of it, and X has let go."""
    for other in world.hosts:
        if other != B:
            cut(world, B, other)
    world.until(lambda: world.leader_of(TOPIC) in (A, X))
    world.move(A, B, D)
    world.until(lambda: X not in world.replicas_of(TOPIC) and world.known.version == 1)
    before = len(world.acked)
    world.until(lambda: len(world.acked) > before + 20)


def add_x_again_and_let_it_meet_only_b(world: MovingWorld) -> bool:
    """Whether one of them came to lead."""
    world.move(A, B, D, X)
    world.until(lambda: X in world.replicas_of(TOPIC))
    for other in world.hosts:
        if other not in (B, X):
            cut(world, X, other)
    heal(world, B, X)
    for _ in range(200):
        world.advance(50)
        if any(world.replicas_of(TOPIC)[one].is_leader for one in (B, X)):
            return True
    return False


def bring_all_together(world: MovingWorld) -> None:
    for one in world.hosts:
        for other in world.hosts:
            if one < other:
                heal(world, one, other)
    world.finish(A, B, D, X)


def test_who_was_removed_and_added_again_elects_nobody_with_a_configuration_of_before(
    world: MovingWorld,
) -> None:
    remove_x(world)
    assert not add_x_again_and_let_it_meet_only_b(world)
    assert world.replicas_of(TOPIC)[X].raft.has_lost_state
    bring_all_together(world)


def test_planted_one_that_is_taken_for_new_elects_it(
    world: MovingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the rule, what was acknowledged is lost: the schedule above is one that finds it."""
    monkeypatch.setattr(ControllerState, "has_lost", lambda *_: False)
    remove_x(world)
    assert add_x_again_and_let_it_meet_only_b(world)


def test_a_log_that_was_removed_by_half_is_not_believed(
    world: MovingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The power fails while the files go: some are gone, and the state is there."""
    begun: list[str] = []

    def fail(self: SimDisk, path: str) -> None:
        if TOPIC in path:
            begun.append(path)
            for name in self.list_directory(path):
                if not name.endswith(".log"):
                    self.remove(f"{path}/{name}")
            raise OSError(5, "the machine is about to lose power")

    monkeypatch.setattr(SimDisk, "remove_tree", fail)
    for other in world.hosts:
        if other != B:
            cut(world, B, other)
    world.until(lambda: world.leader_of(TOPIC) in (A, X))
    world.move(A, B, D)
    world.until(lambda: bool(begun) and world.known.version == 1)
    world.hosts[X].fail_power()
    world.move(A, B, D, X)
    world.hosts[X].start()
    world.until(lambda: X in world.replicas_of(TOPIC))
    assert world.replicas_of(TOPIC)[X].raft.has_lost_state
    monkeypatch.undo()
    bring_all_together(world)


def test_the_loss_is_noted_before_the_first_file_goes(
    world: MovingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove_tree = SimDisk.remove_tree
    noted: list[bool] = []

    def watched(self: SimDisk, path: str) -> None:
        if TOPIC in path:
            journal = world.broker(X).replication.durable.journal
            assert journal is not None
            state = journal.get(world.known.group)
            noted.append(state is not None and state.lost_state)
        remove_tree(self, path)

    monkeypatch.setattr(SimDisk, "remove_tree", watched)
    world.move(A, B, D)
    world.finish(A, B, D)
    assert noted and all(noted)


def test_a_log_that_was_removed_does_not_come_back_without_its_state(world: MovingWorld) -> None:
    """It would be taken for damaged, and copied only after a while."""
    directory = f"{DATA_DIRECTORY}/logs/{TOPIC}-0.{world.known.group}"
    journal = world.broker(X).replication.durable.journal
    assert journal is not None
    world.move(A, B, D)
    world.until(lambda: journal.get(world.known.group) is None)
    disk = world.hosts[X].disk
    world.hosts[X].kill()
    disk.tree.crash(random.Random(1), CrashStyle.LOSE_ALL)
    assert disk.tree.find(directory) is None


def test_a_replica_whose_log_was_taken_away_takes_no_part_until_it_has_rejoined(
    world: MovingWorld,
) -> None:
    """An operator removed the directory by hand: the state trusts a log that is not there."""
    group = world.known.group
    world.hosts[B].kill()
    disk = world.broker(A).replication.disk
    directory = f"{DATA_DIRECTORY}/logs/{TOPIC}-0.{group}"
    assert disk.exists(directory)
    seams = world.hosts[B]
    seams.disk.tree.change((*seams.disk.tree.place(directory), None))
    for other in (A, X):
        world.hosts[other].kill()
    seams.start()
    world.until_started(B)
    world.advance(2_000)
    assert B not in world.replicas_of(TOPIC)
    for other in (A, X):
        world.hosts[other].start()
    world.until(lambda: B in world.replicas_of(TOPIC))
    world.finish(A, B, X)


def test_a_group_is_not_opened_while_it_is_on_its_way_out(
    world: MovingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is added again while the note is being made durable."""
    held: list[tuple[object, ...]] = []
    note = ReplicaRemoval._note
    monkeypatch.setattr(ReplicaRemoval, "_note", lambda *args: held.append(args))
    world.move(A, B, D)
    world.until(lambda: bool(held))
    world.move(A, B, X)
    world.advance(3_000)
    assert X not in world.replicas_of(TOPIC)
    (one,) = held
    note(*one)  # type: ignore[arg-type]
    monkeypatch.setattr(ReplicaRemoval, "_note", note)
    world.finish(A, B, X)
