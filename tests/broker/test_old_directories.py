"""A broker's earlier data directory is given back after a newer one took part (decision 0030).

Voters are 3 to 5; the controller's are 1 to 3."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from tests.broker.moving_world import TOPIC, MovingWorld, moving_world
from tests.broker.test_declared_losses import LEFT, LOST, cut, declare, heal, leave_one

from strandline.controller.commands import NoteRejoined, RejoinedNoted
from strandline.model.ids import BrokerId
from strandline.raft.follower.rejoin import Rejoin
from strandline.simulation.disk.directory_tree import DirectoryTree

HOME = (3, 4, 5)
WAIT_MS = 10_000


@dataclass(frozen=True)
class Kept:
    """A data directory that was taken out."""

    tree: DirectoryTree
    directory_id: str
    cluster_id: str


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingWorld]:
    """Five brokers, one topic with voters 3 to 5, a producer that goes on."""
    with moving_world(monkeypatch, HOME) as made:
        made.until(lambda: len(made.acked) > 10)
        yield made


def replace_directory(world: MovingWorld, broker: int) -> Kept:
    """Stop a broker, and put an empty directory in the place of its own."""
    host = world.hosts[broker]
    if host.program is not None:
        host.kill()
    kept = Kept(host.disk.tree, world.directory_ids[broker], world.cluster_ids.pop(broker))
    host.disk.tree = DirectoryTree()
    world.directory_ids[broker] = f"new-{world.scheduler.now_us}-{broker}"
    return kept


def restore_directory(world: MovingWorld, broker: int, kept: Kept) -> Kept:
    """The other way round; what is taken out."""
    out = replace_directory(world, broker)
    world.hosts[broker].disk.tree = kept.tree
    world.directory_ids[broker] = kept.directory_id
    world.cluster_ids[broker] = kept.cluster_id
    return out


def start_and_continue(world: MovingWorld, *brokers: int) -> None:
    """Start them; until all replicas are whole, and more was acknowledged."""
    for one in brokers:
        world.hosts[one].start()
    world.until_started(*brokers)
    world.until(lambda: world.is_settled(*HOME))
    before = len(world.acked)
    world.until(lambda: len(world.acked) > before + 10)


def replace_directories(world: MovingWorld, *brokers: int) -> dict[int, Kept]:
    """One after the other, under load; those that were taken out."""
    old = {}
    for one in brokers:
        old[one] = replace_directory(world, one)
        start_and_continue(world, one)
    return old


def stop(world: MovingWorld, *brokers: int) -> None:
    for one in brokers:
        world.hosts[one].kill()


def start(world: MovingWorld, *brokers: int) -> None:
    for one in brokers:
        world.hosts[one].start()
    world.until_started(*brokers)


def test_old_directories_of_a_majority_elect_nobody_and_the_newer_ones_go_on(
    world: MovingWorld,
) -> None:
    old = replace_directories(world, 4, 5)
    stop(world, *HOME)
    newer = {one: restore_directory(world, one, kept) for one, kept in old.items()}
    start(world, 4, 5)
    world.advance(WAIT_MS)
    assert not world.leader_of(TOPIC)
    assert all(one.raft.has_lost_state for one in world.replicas_of(TOPIC).values())
    for one, kept in newer.items():
        restore_directory(world, one, kept)
    start(world, 4, 5)
    world.until(lambda: bool(world.leader_of(TOPIC)))
    start_and_continue(world, 3)
    world.check()


def test_one_old_directory_is_brought_up_to_date_and_votes_again(world: MovingWorld) -> None:
    old = replace_directories(world, 4)
    restore_directory(world, 4, old[4])
    start_and_continue(world, 4)
    stop(world, 3)
    before = len(world.acked)
    world.until(lambda: len(world.acked) > before)
    start_and_continue(world, 3)
    world.check()


def test_an_old_directory_is_the_truth_where_the_newer_one_never_took_part(
    world: MovingWorld,
) -> None:
    """Two brokers begin on empty directories at once, as where mounts are missing: no replica
    leads then, so neither rejoins; with their own directories they need no other broker."""
    stop(world, *HOME)
    old = {one: replace_directory(world, one) for one in (4, 5)}
    start(world, 3, 4, 5)
    world.advance(WAIT_MS)
    assert not world.leader_of(TOPIC)
    stop(world, 3)
    for one, kept in old.items():
        restore_directory(world, one, kept)
    start(world, 4, 5)
    world.until(lambda: bool(world.leader_of(TOPIC)))
    start_and_continue(world, 3)
    world.check()


def test_directories_that_are_exchanged_over_and_over_are_each_brought_up_to_date(
    world: MovingWorld,
) -> None:
    kept = replace_directories(world, 4)[4]
    for _ in range(4):
        kept = restore_directory(world, 4, kept)
        start(world, 4)
        world.until(lambda: 4 in world.replicas_of(TOPIC))
        assert world.replicas_of(TOPIC)[4].raft.has_lost_state
        start_and_continue(world)
    world.check()


def test_the_directory_that_took_part_last_is_trusted_at_every_start(world: MovingWorld) -> None:
    replace_directories(world, 4, 5)
    for _ in range(2):
        stop(world, *HOME)
        start(world, 4, 5)
        world.until(lambda: bool(world.leader_of(TOPIC)))
        assert not any(one.raft.has_lost_state for one in world.replicas_of(TOPIC).values())
        start_and_continue(world, 3)
    world.check()


@pytest.mark.parametrize("times", [1, 2])
def test_a_directory_that_was_noted_again_in_the_same_start_is_trusted(
    world: MovingWorld, times: int
) -> None:
    """An answer that was late, or lost, has the broker ask again: both are in the log, and the
    replica took part at the first."""
    replace_directories(world, 4, 5)
    group = world.known.group
    for one in (4, 5):
        incarnation = world.broker(one).controller.cluster.brokers[BrokerId(one)].incarnation
        for _ in range(times):
            answer = world.submit(
                NoteRejoined(BrokerId(one), incarnation, (group,)), at=world.controller_leader()
            )
            assert answer == RejoinedNoted()
    world.advance(1_000)
    stop(world, *HOME)
    start(world, 4, 5)
    world.until(lambda: bool(world.leader_of(TOPIC)))
    start_and_continue(world, 3)
    world.check()


def test_an_old_directory_vouches_for_no_leader_before_the_controller_is_heard(
    world: MovingWorld,
) -> None:
    """With the newer one it may have voted for a later leader: no lease may rest on it."""
    old = replace_directories(world, 4)
    world.until(lambda: world.leader_of(TOPIC) == 3)
    assert world.controller_leader() != 3
    restore_directory(world, 4, old[4])
    ways = [way for one in (1, 2, 5) for way in ((4, one), (one, 4))]
    for source, target in ways:
        world.fabric.cut(BrokerId(source), BrokerId(target))
    world.hosts[4].start()
    world.advance(2_000)
    assert world.leader_of(TOPIC) == 3 and not world.starts[4].done()
    assert world.known.group not in world.broker(4).replication.replicas
    liveness = world.broker(3).replication.liveness
    assert liveness.contacts.is_alive(BrokerId(4))
    assert not liveness.contacts.lead_session(BrokerId(4)).is_confirmed(world.known.group)
    for source, target in ways:
        world.fabric.heal(BrokerId(source), BrokerId(target))
    world.until_started(4)
    start_and_continue(world)
    assert liveness.contacts.lead_session(BrokerId(4)).is_confirmed(world.known.group)
    world.check()


def test_a_power_failure_at_any_time_of_a_return_loses_nothing(world: MovingWorld) -> None:
    """The newer directory is brought up to date, and may be struck before it notes that it is."""
    for delay_ms in range(0, 400, 37):
        kept = replace_directory(world, 4)
        world.hosts[4].start()
        world.until_started(4)
        world.advance(delay_ms)
        world.lose_power_of(4, for_ms=50)
        restore_directory(world, 4, kept)
        start_and_continue(world, 4)
    world.check()


def test_where_the_newer_ones_are_gone_a_person_decides(world: MovingWorld) -> None:
    old = replace_directories(world, 4, 5)
    stop(world, *HOME)
    for one, kept in old.items():
        restore_directory(world, one, kept)
    start(world, *HOME)
    world.advance(WAIT_MS)
    assert not world.leader_of(TOPIC)
    stop(world, 4, 5)
    loss = declare(world, 4, 5)
    assert {one.broker for one in loss.lost} == {BrokerId(4), BrokerId(5)}
    world.until(lambda: world.leader_of(TOPIC) == 3)
    start_and_continue(world, 4, 5)


@pytest.mark.parametrize("is_appointed", [False, True])
def test_what_was_given_up_does_not_come_back_with_the_old_directories(
    world: MovingWorld, is_appointed: bool
) -> None:
    """A loss is declared while a majority is back with empty directories, and none of these has
    taken part again when the old ones are given back."""
    leave_one(world)
    old = {one: replace_directory(world, one) for one in LOST}
    heal(world, (LEFT,), LOST)
    for one in LOST:
        world.hosts[one].start()
    world.until_started(*LOST)
    world.advance(WAIT_MS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rejoin, "is_due", lambda self, matched: False)
        loss = declare(world)
        assert (loss.lost, loss.leader) == ((), LEFT)
        if is_appointed:
            world.until(lambda: world.leader_of(TOPIC) == LEFT)
        cut(world, (LEFT,), LOST)
        for one in LOST:
            restore_directory(world, one, old[one])
    for one in LOST:
        world.hosts[one].start()
    world.until_started(*LOST)
    for _ in range(10):
        world.advance(1_000)
        leading = [one for one, replica in world.replicas_of(TOPIC).items() if replica.is_leader]
        assert set(leading) <= {LEFT}
    before = len(world.acked)
    heal(world, (LEFT,), LOST)
    world.until(lambda: world.is_settled(*HOME))
    world.until(lambda: len(world.acked) > before + 10)
    assert world.violations == []
