"""A broker that returns gets what it lacks, not what it has (design section 8: "by the
difference")."""

from dataclasses import replace

import pytest
from tests.simulation.plain_scenario import plain_scenario, run_until_led, started

from strandline.model.ids import BrokerId, GroupId
from strandline.replication.leader import append_sender
from strandline.replication.settings import ReplicationSettings
from strandline.replication.wire import AppendHead, encode_append_head
from strandline.simulation.scenarios.scenario import ProducerPlan, Scenario
from strandline.simulation.swarm.swarm import run_scenario
from strandline.simulation.world.world import World

MS = 1_000
PRODUCER = ProducerPlan("p", GroupId(1), -1, False, 20, 5_000)


def run_for(world: World, duration_ms: int) -> None:
    world.scheduler.run_until(world.scheduler.now_us + duration_ms * MS)


def log_bytes(world: World) -> int:
    return max(replica.log.size_bytes() for replica in world.cluster.replicas())


@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("is_leader_killed", [True, False])
def test_a_broker_that_returns_is_sent_the_difference_only(
    seed: int, *, is_leader_killed: bool
) -> None:
    world = started(plain_scenario(seed=seed, producers=(PRODUCER,)))
    (producer,) = world.producers
    producer.start()
    run_for(world, 8_000)
    leader = next(iter(world.cluster.leading_brokers()))
    others = [broker for broker in world.scenario.brokers if broker != leader]
    away = world.hosts[leader if is_leader_killed else others[0]]
    away.on_down = None
    before = log_bytes(world)
    away.kill()
    assert run_until_led(world, limit_ms=10_000) is not None
    run_for(world, 500)
    producer.stop()
    run_for(world, 2_000)
    difference = log_bytes(world) - before
    sent = world.fabric.counters.sent_bytes
    away.start()
    run_for(world, 3_000)
    replicas = world.cluster.replicas()
    ends = {(replica.log_end_offset, replica.high_watermark) for replica in replicas}
    assert len(replicas) == 3
    assert len(ends) == 1
    assert before > 1_000_000
    # Heartbeats and the like have their share; the log does not.
    assert world.fabric.counters.sent_bytes - sent < difference + before / 5
    assert world.checker.violation is None


def idle_after_load(seed: int) -> World:
    """Everybody has what was written, and nothing more is."""
    world = started(plain_scenario(seed=seed, producers=(PRODUCER,)))
    (producer,) = world.producers
    producer.start()
    run_for(world, 1_000)
    producer.stop()
    run_for(world, 1_000)
    return world


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_broker_that_lost_its_disk_is_whole_again_though_nothing_is_written(seed: int) -> None:
    """The leave to take part again travelled with appends only, and none came."""
    world = idle_after_load(seed)
    leader = next(iter(world.cluster.leading_brokers()))
    host = next(host for broker, host in world.hosts.items() if broker != leader)
    host.on_down = None
    host.lose_disk()
    run_for(world, 100)
    for other in world.hosts.values():  # So that it has everything before it gets the leave.
        if other is not host:
            other.disk.faults.slow_factor = 10
    host.start()
    run_for(world, 3_000)
    assert host.program is not None
    assert not any(replica.raft.has_lost_state for replica in host.program.replicas)
    assert world.checker.violation is None


@pytest.mark.parametrize("seed", range(1, 4))
def test_who_is_whole_again_counts_though_its_word_for_that_is_lost(seed: int) -> None:
    """Nothing was in flight to it, so nobody asked; where it was needed for acks=all, nothing ever
    was (outage seed 80391358)."""
    world = idle_after_load(seed)
    (leader,) = (one for one in world.cluster.replicas() if one.is_leader)
    broker = next(one for one in world.scenario.brokers if one != leader.self_id)
    host = world.hosts[broker]
    host.on_down = None
    host.lose_disk()
    run_for(world, 100)
    host.start()

    def is_whole() -> bool:
        return any(
            one.self_id == broker and not one.raft.has_lost_state
            for one in world.cluster.replicas()
        )

    assert world.scheduler.run_until_true(is_whole, limit_us=world.scheduler.now_us + 5_000_000)
    assert leader.raft.progress[broker].is_recovering, "its word is under way"
    world.fabric.reset(broker, leader.self_id)
    run_for(world, 3_000)
    assert not leader.raft.progress[broker].is_recovering


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_follower_that_is_behind_is_not_asked_to_put_off_its_flushes(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its window is free again only when they are done: it got one append each 100 ms."""
    put_off: list[bool] = []

    def encode(head: AppendHead) -> bytes:
        request = head.request
        if request.runs and request.runs[-1].last_index <= request.commit:
            put_off.append(head.may_wait)
        return encode_append_head(head)

    monkeypatch.setattr(append_sender, "encode_append_head", encode)
    settings = ReplicationSettings(inflight_count_max=1, append_bytes_max=2_048)
    plan = ProducerPlan("p", GroupId(1), 1, False, 15, 2_000)
    world = started(plain_scenario(seed=seed, producers=(plan,), settings=settings))
    (producer,) = world.producers
    leader = next(iter(world.cluster.leading_brokers()))
    behind = next(broker for broker in world.scenario.brokers if broker != leader)
    producer.start()
    run_for(world, 500)
    world.fabric.cut(leader, behind)
    run_for(world, 400)
    world.fabric.heal(leader, behind)
    run_for(world, 2_000)
    assert len(put_off) > 5
    assert not any(put_off)
    assert world.checker.violation is None


def test_refusals_of_what_was_sent_side_by_side_are_no_answers_to_the_question_after_them() -> None:
    """The question was lost: the follower's disk was full. The leader waited for its answer."""
    assert run_scenario(Scenario.draw(269)).violation is None


def test_a_follower_that_is_heard_again_is_asked_at_once_how_far_it_is() -> None:
    """Its leader had asked in vain, at ever longer intervals. What it answered went into
    connections that had died without a word, and were given up after ten seconds."""
    world = started(plain_scenario(producers=(PRODUCER,)))
    (producer,) = world.producers
    (leader,) = (replica for replica in world.cluster.replicas() if replica.is_leader)
    mute = next(one for one in world.scenario.brokers if one != leader.self_id)
    for pipe in world.fabric.pipes_of(mute):
        pipe.swallow()
    for other in world.scenario.brokers:
        for pipe in world.fabric.pipes_of(other):
            if pipe.receiver is world.fabric.endpoint(mute) and pipe.replies is not None:
                pipe.replies.swallow()
    producer.start()
    run_for(world, 500)
    producer.stop()
    run_for(world, 9_000)
    progress = leader.raft.progress[mute]
    assert progress.match_flushed < leader.log.last_index
    liveness = leader.host.liveness
    assert world.scheduler.run_until_true(
        lambda: liveness.contacts.is_alive(mute), limit_us=world.scheduler.now_us + 4_000 * MS
    )
    run_for(world, 1_000)
    assert leader.is_leader and progress.match_flushed == leader.log.last_index
    assert world.checker.violation is None


def lose_disk_and_return(world: World, broker: BrokerId) -> None:
    host = world.hosts[broker]
    host.on_down = None
    host.lose_disk()
    run_for(world, 100)
    host.start()


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_leader_that_only_hears_who_has_lost_its_log_gives_up(seed: int) -> None:
    """It can commit nothing any more, nor have these take part again. It led on, for they answered
    its heartbeats, and its log grew by what waits for no quorum: what an operator was shown to be
    left was never what was left by then (outage seed 34088356)."""
    world = started(plain_scenario(seed=seed, producers=(replace(PRODUCER, acks=1),)))
    (producer,) = world.producers
    producer.start()
    run_for(world, 1_000)
    (leader,) = world.cluster.leading_brokers()
    for broker in world.scenario.brokers:
        if broker != leader:
            lose_disk_and_return(world, broker)
    run_for(world, 5_000)
    assert world.cluster.leading_brokers() == []
    ends = {replica.self_id: replica.log_end_offset for replica in world.cluster.replicas()}
    run_for(world, 3_000)
    assert {replica.self_id: replica.log_end_offset for replica in world.cluster.replicas()} == ends
    assert world.checker.violation is None


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_leader_without_which_nobody_is_elected_waits_for_who_lost_its_log(seed: int) -> None:
    """It can have that one take part again by itself, whoever else is away."""
    plain = plain_scenario(seed=seed, producers=(PRODUCER,))
    (plan,) = plain.groups
    two = plan.voters[:2]
    world = started(replace(plain, groups=(replace(plan, voters=two, hosts=two),)))
    (producer,) = world.producers
    producer.start()
    run_for(world, 1_000)
    world.hosts[plan.voters[2]].on_down = None
    world.hosts[plan.voters[2]].kill()
    run_for(world, 5_000)
    (leader,) = world.cluster.leading_brokers()
    (other,) = (one for one in two if one != leader)
    for rest in world.hosts.values():  # It is long in coming back.
        rest.disk.faults.slow_factor = 200
    lose_disk_and_return(world, other)
    run_for(world, 10_000)
    assert not any(replica.raft.has_lost_state for replica in world.cluster.replicas())
    assert run_until_led(world, limit_ms=5_000) is not None
    assert world.checker.violation is None


@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("is_disk_lost", [True, False], ids=["loses its disk", "is killed"])
def test_a_leader_waits_for_who_was_told_when_it_takes_part_again(
    seed: int, *, is_disk_lost: bool
) -> None:
    """That one needs nobody else, however long it copies, and whoever goes meanwhile."""
    slow = replace(plain_scenario(seed=seed, producers=(PRODUCER,)), bytes_per_ms=400)
    world = started(slow)
    (producer,) = world.producers
    producer.start()
    run_for(world, 6_000)
    producer.stop()
    run_for(world, 1_000)
    (leader,) = (one for one in world.cluster.replicas() if one.is_leader)
    copies, goes = (one for one in world.scenario.brokers if one != leader.self_id)
    lose_disk_and_return(world, copies)
    limit_us = world.scheduler.now_us + 5_000 * MS
    assert world.scheduler.run_until_true(
        lambda: leader.raft.progress[copies].rejoin_at >= 0, limit_us=limit_us
    )
    run_for(world, 200)
    if is_disk_lost:
        lose_disk_and_return(world, goes)
    else:
        world.hosts[goes].on_down = None
        world.hosts[goes].kill()
    run_for(world, 30_000)
    assert world.cluster.leading_brokers() == [leader.self_id]
    assert not any(replica.raft.has_lost_state for replica in world.cluster.replicas())
    assert run_until_led(world, limit_ms=5_000) is not None
    assert world.checker.violation is None
