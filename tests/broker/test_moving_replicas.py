"""Replicas move under load while brokers die at any stage.

Source: decision 0009."""

import asyncio
import logging
from collections.abc import Iterator
from itertools import product as pairs

import pytest
from tests.broker.moving_world import OLD, STAGES, TOPIC, MovingWorld, moving_world, nothing_begun
from tests.broker.test_groups_in_a_cluster import commit, find, make_cluster
from tests.broker.test_groups_in_a_cluster import fetch as fetch_offsets

from strandline.broker.coordinators.controller_host import ControllerHost
from strandline.broker.groups.moving import Moving
from strandline.config.topic import TopicConfig
from strandline.controller.commands import (
    AlterReassignments,
    Command,
    CreateTopics,
    DeleteTopics,
    NewTopic,
    PartitionResults,
    TopicToDelete,
    WantedReplicas,
)
from strandline.controller.names import OFFSETS_TOPIC
from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.replication.replica.replica import Replica
from strandline.simulation.world.scheduler import US_PER_MS

NEW = (4, 2, 3)
VICTIMS = ("leader", "controller", "added", "removed")
IN_BETWEEN = tuple(stage for stage in STAGES if stage != "stable")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingWorld]:
    """Five brokers, one topic on the first three, a producer that goes on."""
    with moving_world(monkeypatch) as made:
        yield made


def lead_from(world: MovingWorld, broker: int) -> None:
    """Have this broker lead."""
    while world.leader_of(TOPIC) != broker:
        world.until(lambda: bool(world.leader_of(TOPIC)))
        world.replicas_of(TOPIC)[world.leader_of(TOPIC)].transfer_leadership(BrokerId(broker))
        world.advance(501)


@pytest.mark.parametrize(
    "new", [NEW, (1, 2, 4), (4, 5, 1), (2, 4, 5), (4,), (1,), (5, 4, 3, 2, 1), (3, 2)]
)
@pytest.mark.parametrize("leader", [1, 2])
def test_replicas_move_while_a_producer_writes(
    world: MovingWorld, new: tuple[int, ...], leader: int
) -> None:
    lead_from(world, leader)
    assert world.move(*new) == 0
    world.finish(*new)


@pytest.mark.parametrize("old", [(1,), (4,), (1, 2)])
@pytest.mark.parametrize("new", [(5,), (3, 4, 5)])
def test_few_replicas_become_others_or_more(
    monkeypatch: pytest.MonkeyPatch, old: tuple[int, ...], new: tuple[int, ...]
) -> None:
    with moving_world(monkeypatch, old) as world:
        assert world.move(*new) == 0
        world.finish(*new)


@pytest.mark.parametrize(("stage", "victim"), list(pairs(STAGES, VICTIMS)))
def test_who_dies_at_any_stage_stops_no_move_and_loses_nothing(
    world: MovingWorld, stage: str, victim: str
) -> None:
    world.move(*NEW)
    world.reach(stage)
    world.kill_one(victim, added=4, removed=1)
    world.finish(*NEW)


@pytest.mark.parametrize("stage", IN_BETWEEN)
@pytest.mark.parametrize("everybody", [False, True])
def test_a_cancel_at_any_stage_leads_back(world: MovingWorld, stage: str, everybody: bool) -> None:
    world.move(*NEW)
    world.reach(stage)
    assert world.cancel() in (0, Error.NO_REASSIGNMENT_IN_PROGRESS)
    if everybody:
        world.lose_power()
    world.until(lambda: not world.known.is_moving)
    # Either it was over before the cancel came, or it is undone.
    final = world.known.replicas
    assert set(final) in (set(OLD), set(NEW))
    if stage != "final":
        assert final == OLD
    world.finish(*final)


@pytest.mark.parametrize("stage", IN_BETWEEN)
def test_another_target_at_any_stage_is_reached(world: MovingWorld, stage: str) -> None:
    world.move(*NEW)
    world.reach(stage)
    assert world.move(5, 1, 2) == 0
    world.finish(5, 1, 2)


def test_a_broker_that_is_away_keeps_the_move_waiting_and_nobody_else(world: MovingWorld) -> None:
    world.hosts[4].kill()
    world.move(*NEW)
    world.advance(5_000)
    before = len(world.acked)
    world.advance(5_000)
    assert len(world.acked) > before + 100
    assert world.known.pending == ()
    assert world.cancel() == 0
    world.hosts[4].start()
    world.until_started(4)
    world.finish(*OLD)


def test_a_grant_is_withdrawn_once_who_was_granted_a_vote_died_before_the_change_was_begun(
    world: MovingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The move waits, and can be cancelled; in an outage meanwhile the added broker does not
    count."""
    world.move(*NEW)
    with nothing_begun(monkeypatch):
        world.reach("granted")
        world.hosts[4].kill()
        world.until(lambda: not world.any_leader(lambda one: one.may_count(BrokerId(4))))
    world.advance(5_000)
    one = world.known
    assert (one.possible, one.target, one.version) == ((OLD,), NEW, 2)
    assert world.cancel() == 0
    world.finish(*OLD)
    assert world.known.version == 2
    world.hosts[4].start()
    world.until_started(4)
    world.finish(*OLD)


def test_a_grant_that_is_withdrawn_again_and_again_is_waited_for_longer(
    world: MovingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The added broker is in step for moments only, too short for a grant."""
    in_step = Replica.is_ready_to_vote
    submit = ControllerHost.submit

    def ready(replica: Replica, broker: BrokerId) -> bool:
        is_out = broker == 4 and replica.host.clock.monotonic_ms() % 3_000 >= 150
        return not is_out and in_step(replica, broker)

    async def from_afar(host: ControllerHost, command: Command, **more: int) -> object:
        arrived = asyncio.Event()
        world.scheduler.after(200 * US_PER_MS, arrived.set)
        await arrived.wait()
        return await submit(host, command, **more)

    monkeypatch.setattr(Replica, "is_ready_to_vote", ready)
    assert world.move(1, 2, 4) == 0
    monkeypatch.setattr(ControllerHost, "submit", from_afar)
    world.until(lambda: world.is_settled(1, 2, 4))
    assert world.known.version < 12


def test_a_grant_that_cannot_begin_is_told_once_while_no_controller_answers(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "strandline.broker")
    with moving_world(monkeypatch, (3, 4)) as world:
        with nothing_begun(monkeypatch):
            assert world.move(3, 4, 5) == 0
            world.until(lambda: all(one.pending for one in world.states.values()))
            for one in (1, 2, 5):
                world.hosts[one].kill()
            world.until(lambda: not world.any_leader(lambda one: one.may_count(BrokerId(5))))
        world.advance(20_000)
        assert sum("cannot begin" in one for one in caplog.messages) == 1
        for one in (1, 2, 5):
            world.hosts[one].start()
        world.until_started(1, 2, 5)
        world.finish(3, 4, 5)


def test_one_that_is_removed_while_it_is_away_clears_its_log_when_it_returns(
    world: MovingWorld,
) -> None:
    world.hosts[1].kill()
    world.move(*NEW)
    world.until(lambda: not world.known.is_moving)
    world.hosts[1].start()
    world.until_started(1)
    world.finish(*NEW)
    journal = world.broker(1).replication.durable.journal
    assert journal is not None and journal.get(world.known.group) is None


def test_one_that_was_added_again_meanwhile_goes_on_with_the_log_it_has(
    world: MovingWorld,
) -> None:
    world.hosts[1].kill()
    world.move(*NEW)
    world.until(lambda: not world.known.is_moving)
    world.move(1, 2, 3)
    world.until(lambda: world.any_leader(lambda one: 1 in one.configuration.observers))
    world.hosts[1].start()
    world.until_started(1)
    world.until(lambda: 1 in world.replicas_of(TOPIC))
    assert not world.replicas_of(TOPIC)[1].raft.has_lost_state
    world.finish(1, 2, 3)


def test_one_that_learns_late_that_it_was_removed_keeps_what_it_has_been_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its state says that the log is elsewhere, and its log that it is needed here."""
    with moving_world(monkeypatch, (4, 5)) as world:
        lead_from(world, 4)
        controller = BrokerId(world.controller_leader())
        hosting = world.broker(5)._hosting
        world.broker(5).controller.on_applied.append(lambda _: hosting.reconcile())
        world.fabric.cut(controller, BrokerId(5))
        assert world.move(4) == 0
        world.until(lambda: world.known.replicas == (4,))
        assert world.move(5) == 0
        world.until(lambda: world.leader_of(TOPIC) == 5)
        assert world.states[5].replicas == (4, 5)
        world.fabric.heal(controller, BrokerId(5))
        world.finish(5)


def test_a_topic_may_be_deleted_while_it_moves(world: MovingWorld) -> None:
    world.move(*NEW)
    world.reach("granted")
    world.submit(DeleteTopics((TopicToDelete(TOPIC),)), at=world.controller_leader())
    world.until(lambda: not world.replicas_of(TOPIC))
    world.advance(2_000)
    assert all(world.directories(one) == [] for one in world.hosts)


def test_a_group_that_fails_delays_nobody_behind_it_and_is_told_of_once(
    world: MovingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is it given up: what has gone wrong may be over."""
    placed = ((0, (BrokerId(1),)),)
    world.submit(CreateTopics((NewTopic(name="other", assignments=placed),)))
    world.until(lambda: bool(world.leader_of("other")))
    lead_from(world, 1)
    group, honest, count = world.known.group, Moving._step, 0
    assert group < world.replicas_of("other")[1].group  # It is looked at first.

    def step(self: Moving, replica: Replica, partition: Partition, config: TopicConfig) -> bool:
        nonlocal count
        if replica.group == group:
            count += 1
            raise RuntimeError("a mistake")
        return honest(self, replica, partition, config)

    def errors() -> list[str]:
        return [error for host in world.hosts.values() for error in host.loop_errors]

    with monkeypatch.context() as inner:
        inner.setattr(Moving, "_step", step)
        assert world.move(*NEW) == 0
        wanted = WantedReplicas(topic="other", index=0, replicas=(BrokerId(4),))
        world.submit(AlterReassignments((wanted,)))
        world.until(lambda: count > 3)
        world.until(lambda: set(world.replicas_of("other")) == {4})
        (error,) = errors()
        assert f"{TOPIC}-0" in error and "a mistake" in error
    world.finish(*NEW)
    assert errors() == [error]
    for host in world.hosts.values():
        host.loop_errors.clear()


def test_committed_offsets_move_with_their_partition() -> None:
    """The coordinator of a group is the leader of one partition."""
    world = make_cluster()
    group = "readers"
    find(world, group)

    def partition() -> Partition:
        found = world.broker(1).services.coordinator.partition_of(group)
        assert found is not None
        return found

    first = partition()
    away = tuple(one for one in world.hosts if one not in first.replicas)
    for offset, new in enumerate((away, first.replicas, first.replicas[:1], away), start=5):
        at = find(world, group)
        assert commit(world, at, group, offset) == 0
        wanted = WantedReplicas(topic=OFFSETS_TOPIC, index=first.index, replicas=new)
        answer = world.submit(AlterReassignments((wanted,)))
        assert isinstance(answer, PartitionResults) and not answer.partitions[0].error_code
        world.until(lambda goal=new: partition().replicas == goal)  # type: ignore[misc]
        assert fetch_offsets(world, find(world, group), group)[0] == offset
    world.close()


def test_there_and_back_again(world: MovingWorld) -> None:
    for replicas in (NEW, OLD, (4, 5, 1), OLD, (1,), (5,), OLD):
        assert world.move(*replicas) == 0
        world.finish(*replicas)
