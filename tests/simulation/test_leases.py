"""A leader answers from its own knowledge only while nobody else can lead (design section 5)."""

from dataclasses import replace
from functools import partial

import pytest
from tests.simulation.mutants import (
    forget_whom_one_has_left,
    vote_against_a_living_leader,
    vote_for_oneself_whoever_leads,
)
from tests.simulation.plain_scenario import plain_scenario, run_until_led, started

from strandline.base.network import Lane
from strandline.model.ids import BrokerId, Epoch, Index
from strandline.raft.group.configuration import Configuration
from strandline.raft.messages import VoteRequest, VoteResponse
from strandline.raft.transitions import Role
from strandline.replication.replica.replica import Replica
from strandline.replication.settings import ReplicationSettings
from strandline.replication.wire import Heartbeat, Kind, encode_control
from strandline.simulation.scenarios.scenario import ProducerPlan
from strandline.simulation.world.host import SimHost
from strandline.simulation.world.world import World

MS = 1_000
PRODUCER = ProducerPlan("p", plain_scenario().groups[0].group, -1, False, 20, 50)


def busy_world(seed: int) -> World:
    """Three brokers with slow disks, and a producer that writes without pause."""
    world = started(plain_scenario(seed=seed, flush_us=(10 * MS, 40 * MS), producers=(PRODUCER,)))
    for producer in world.producers:
        producer.start()
    world.scheduler.run_until(world.scheduler.now_us + 500 * MS)
    return world


def leader_of(world: World) -> Replica:
    leading = [replica for replica in world.cluster.replicas() if replica.raft.is_leader]
    return max(leading, key=lambda replica: replica.epoch)


def assert_never_stale(world: World, old: Replica, duration_ms: int) -> None:
    """Whenever the old leader says that it may answer, it knows what the newest one knows."""
    end_us = world.scheduler.now_us + duration_ms * MS
    while world.scheduler.now_us < end_us and world.scheduler.step():
        if old.can_serve_reads:
            newest = leader_of(world)
            assert newest is old, (
                f"at {world.scheduler.now_us} us broker {old.self_id} answers up to "
                f"{old.high_watermark}; broker {newest.self_id} leads epoch {newest.epoch}"
            )


@pytest.mark.parametrize("seed", range(1, 16))
def test_a_leader_that_was_stopped_does_not_answer_from_the_past(seed: int) -> None:
    """Kafka's resumed leader does: it answers once more before it learns of its successor."""
    world = busy_world(seed)
    old = leader_of(world)
    host = world.hosts[old.self_id]
    host.pause()
    world.scheduler.run_until(world.scheduler.now_us + 3_000 * MS)
    assert leader_of(world) is not old
    host.resume()
    assert_never_stale(world, old, 1_000)


def test_a_lease_of_former_voters_ends_with_them() -> None:
    """Who was the only voter could answer for ever."""
    world = busy_world(1)
    old = leader_of(world)
    host = world.hosts[old.self_id]
    assert host.process is not None
    others = [broker for broker in world.scenario.brokers if broker != old.self_id]
    for voters, observers in (([], others), (others, [])):
        change = partial(
            old.change_configuration, voters=[old.self_id, *voters], observers=observers
        )
        host.process.run_now(change)
        world.scheduler.run_until(world.scheduler.now_us + 1_000 * MS)
        assert set(old.configuration.voters) == {old.self_id, *voters}
        assert not old.configuration.is_joint and old.can_serve_reads
    host.pause()
    world.scheduler.run_until(world.scheduler.now_us + 3_000 * MS)
    assert leader_of(world) is not old
    assert old.is_leader and not old.can_serve_reads  # As it would answer when it goes on.
    host.resume()
    assert_never_stale(world, old, 1_000)


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_leader_that_was_cut_off_stops_answering_before_another_is_elected(seed: int) -> None:
    world = busy_world(seed)
    old = leader_of(world)
    for other in world.scenario.brokers:
        world.fabric.cut(old.self_id, other)
        world.fabric.cut(other, old.self_id)
    assert old.can_serve_reads
    assert_never_stale(world, old, 4_000)
    assert leader_of(world) is not old
    for other in world.scenario.brokers:
        world.fabric.heal(old.self_id, other)
        world.fabric.heal(other, old.self_id)
    assert_never_stale(world, old, 4_000)
    assert run_until_led(world, limit_ms=5_000) is not None


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_vote_that_is_being_made_durable_confirms_no_lease(seed: int) -> None:
    """The voter's core has moved on. A heartbeat of the old leader that comes in before the vote
    is durable must not be answered as if it had not: the vote is about to be sent."""
    world = busy_world(seed)
    old = leader_of(world)
    voters = [replica for replica in world.cluster.replicas() if replica is not old]
    for voter in voters:
        world.hosts[voter.self_id].disk.faults.slow_factor = 10
    world.hosts[old.self_id].pause()
    assert world.scheduler.run_until_true(
        lambda: any(_is_voting(voter) for voter in voters),
        limit_us=world.scheduler.now_us + 10_000 * MS,
    )
    voter = next(voter for voter in voters if _is_voting(voter))
    for way in ((voter.raft.vote, old.self_id), (old.self_id, voter.raft.vote)):
        world.fabric.cut(*way)
    world.hosts[old.self_id].resume()
    answers = world.fabric.counters.delivered_count
    while _is_voting(voter):
        assert world.scheduler.step()
        assert not old.can_serve_reads
    assert world.fabric.counters.delivered_count > answers + 2


def unequal(seed: int, *, slow_ppm: int, fast_ppm: int, lease_ratio: float = 0.85) -> None:
    """The leader's clock is slow and the others' are fast: it is cut off, and counts on its promise
    for longer than they do."""
    settings = ReplicationSettings(lease_ratio=lease_ratio, election_spread_ms=20)
    drawn = plain_scenario(seed=seed, settings=settings)
    world = started(drawn)
    old = leader_of(world)
    ppm = dict.fromkeys(drawn.brokers, fast_ppm) | {old.self_id: -slow_ppm}
    world = started(replace(drawn, drift_ppm=tuple(ppm[one] for one in drawn.brokers)))
    others = [replica for replica in world.cluster.replicas() if replica.self_id != old.self_id]
    process = world.hosts[leader_of(world).self_id].process
    assert process is not None
    if leader_of(world) in others:
        process.run_now(lambda: leader_of(world).transfer_leadership(old.self_id))
    world.scheduler.run_until(world.scheduler.now_us + 2_000 * MS)
    old = leader_of(world)
    assert world.hosts[old.self_id].clock.drift_ppm == -slow_ppm
    for replica in others:
        cut(world, old.self_id, replica.self_id)
    assert_never_stale(world, old, 4_000)
    assert leader_of(world) is not old


@pytest.mark.parametrize("seed", range(1, 16))
def test_a_lease_holds_between_clocks_that_go_apart(seed: int) -> None:
    """By 15 % at most: `lease_ratio` says so."""
    unequal(seed, slow_ppm=70_000, fast_ppm=70_000)


def test_a_lease_that_makes_no_allowance_for_that_is_found() -> None:
    with pytest.raises(AssertionError, match="answers up to"):
        for seed in range(1, 11):
            unequal(seed, slow_ppm=70_000, fast_ppm=70_000, lease_ratio=1.0)


def outvote(seed: int) -> None:
    """One follower does not hear its leader, and stands for election; the other one hears both, and
    the leader, which does not hear it any more, still counts on its promise."""
    world = started(plain_scenario(seed=seed))
    world.scheduler.run_until(world.scheduler.now_us + 2_000 * MS)
    old = leader_of(world)
    deaf, voter = (broker for broker in world.scenario.brokers if broker != old.self_id)
    world.fabric.cut(old.self_id, deaf)
    world.fabric.cut(deaf, old.self_id)
    timeout_ms = world.scenario.settings.election_timeout_ms
    world.scheduler.run_until(world.scheduler.now_us + (timeout_ms - 200) * MS)
    world.fabric.cut(voter, old.self_id)
    assert old.can_serve_reads
    assert_never_stale(world, old, 5_000)


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_leader_that_may_count_on_its_lease_is_not_outvoted(seed: int) -> None:
    outvote(seed)


def test_voters_that_forget_their_promise_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    vote_against_a_living_leader(monkeypatch)
    with pytest.raises(AssertionError, match="answers up to"):
        for seed in range(1, 11):
            outvote(seed)


def _is_voting(replica: Replica) -> bool:
    """For another one, and that is not durable yet."""
    return replica.is_busy and replica.raft.vote not in (-1, replica.self_id)


def deposed(seed: int) -> tuple[World, Replica, SimHost]:
    """A leader that was cut off and has not noticed yet; and the broker with whose vote, and with
    whose help, another one leads that is cut off from both now."""
    world = busy_world(seed)
    old = leader_of(world)
    for other in set(world.scenario.brokers) - {old.self_id}:
        cut(world, old.self_id, other)
    assert world.scheduler.run_until_true(
        lambda: leader_of(world) is not old and leader_of(world).is_serving,
        limit_us=world.scheduler.now_us + 5_000 * MS,
    )
    new = leader_of(world)
    world.scheduler.run_until(world.scheduler.now_us + 100 * MS)
    (third,) = set(world.scenario.brokers) - {old.self_id, new.self_id}
    cut(world, new.self_id, third)
    assert old.raft.is_leader
    world.hosts[third].on_down = None
    return world, old, world.hosts[third]


def heal(world: World, one: BrokerId, other: BrokerId) -> None:
    world.fabric.heal(one, other)
    world.fabric.heal(other, one)


def cut(world: World, one: BrokerId, other: BrokerId) -> None:
    world.fabric.cut(one, other)
    world.fabric.cut(other, one)


@pytest.mark.parametrize("seed", range(1, 6))
def test_who_lost_its_disk_proves_nothing_for_a_deposed_leader(seed: int) -> None:
    """It has forgotten for whom it voted."""
    world, old, third = deposed(seed)
    third.lose_disk()
    third.start()
    heal(world, old.self_id, third.broker)
    assert_never_stale(world, old, 3_000)


@pytest.mark.parametrize("seed", range(1, 6))
def test_who_has_not_opened_a_group_proves_nothing_for_its_deposed_leader(seed: int) -> None:
    world, old, third = deposed(seed)
    third.kill()
    third.start()
    assert third.program is not None
    assert third.process is not None
    replication = third.program.replication
    third.process.run_now(lambda: replication.close_group(old.group))
    heal(world, old.self_id, third.broker)
    assert_never_stale(world, old, 3_000)


@pytest.mark.parametrize("seed", range(1, 11))
def test_who_handed_over_and_heard_nothing_since_makes_nobody_forget_the_next_leader(
    seed: int,
) -> None:
    """It was cut off since then, and stands again. The voter that it reaches has promised itself to
    the next leader, which counts on that."""
    world = started(plain_scenario(seed=seed))
    world.scheduler.run_until(world.scheduler.now_us + 2_000 * MS)
    old = leader_of(world)
    to, voter = (broker for broker in world.scenario.brokers if broker != old.self_id)
    process = world.hosts[old.self_id].process
    assert process is not None
    process.run_now(lambda: old.transfer_leadership(to))
    new = next(replica for replica in world.cluster.replicas() if replica.self_id == to)
    assert world.scheduler.run_until_true(
        lambda: new.raft.is_leader, limit_us=world.scheduler.now_us + 100 * MS
    )
    assert old.leader_id != to
    for other in (to, voter):
        cut(world, old.self_id, other)
    timeout_ms = world.scenario.settings.election_timeout_ms
    world.scheduler.run_until(world.scheduler.now_us + (timeout_ms - 50) * MS)
    assert old.transfer.is_under_way
    assert new.can_serve_reads
    cut(world, to, voter)
    heal(world, old.self_id, voter)
    assert_never_stale(world, new, 2_000)


@pytest.mark.parametrize("seed", range(1, 9))
def test_who_is_elected_late_by_promised_votes_never_answers_beside_a_later_leader(
    seed: int,
) -> None:
    """The heir was stopped; by the time that it obeys, another one has a lease, of which it has not
    heard. It leads its epoch by the votes in the order, and whom it tells so has moved on."""
    world = started(plain_scenario(seed=seed, brokers=5))
    world.scheduler.run_until(world.scheduler.now_us + 2_000 * MS)
    old = leader_of(world)
    transfer_target = next(replica for replica in world.cluster.replicas() if replica is not old)
    promised_epoch = transfer_target.epoch + 1
    stopped, process = world.hosts[transfer_target.self_id], world.hosts[old.self_id].process
    assert process is not None
    stopped.pause()
    process.run_now(lambda: old.transfer_leadership(transfer_target.self_id))
    assert world.scheduler.run_until_true(
        lambda: not old.raft.is_leader, limit_us=world.scheduler.now_us + 100 * MS
    )
    world.scheduler.run_until(world.scheduler.now_us + 50 * MS)
    for replica in world.cluster.replicas():
        if replica is not transfer_target:
            cut(world, transfer_target.self_id, replica.self_id)
    world.scheduler.run_until(world.scheduler.now_us + 2_500 * MS)
    new = leader_of(world)
    assert new.can_serve_reads and new.epoch > promised_epoch
    for replica in world.cluster.replicas():
        if replica not in (transfer_target, old, new):
            heal(world, transfer_target.self_id, replica.self_id)
    elected: list[Epoch] = []
    stopped.resume()
    end_us = world.scheduler.now_us + 2_000 * MS
    while world.scheduler.now_us < end_us and world.scheduler.step():
        if transfer_target.is_leader and not elected:
            elected.append(transfer_target.epoch)
        assert not transfer_target.can_serve_reads
    assert elected == [promised_epoch]


def test_a_vote_that_had_to_wait_is_refused_if_a_leader_was_heard_meanwhile() -> None:
    """What came before a heartbeat is decided after it, and the heartbeat is answered at once."""
    world = started(plain_scenario())
    leader = leader_of(world)
    follower = next(replica for replica in world.cluster.replicas() if replica is not leader)
    host = world.hosts[follower.self_id]
    other = next(b for b in world.scenario.brokers if b not in (leader.self_id, follower.self_id))
    for broker in (leader.self_id, other):
        world.hosts[broker].on_down = None
        world.hosts[broker].kill()
    world.scheduler.run_until(world.scheduler.now_us + 1_000 * MS)
    host.disk.faults.slow_factor = 1_000
    epoch = follower.epoch
    last = follower.log.last_index
    group = follower.group

    def ask(candidate: BrokerId, ahead: int, *, transfer: bool) -> None:
        vote = VoteRequest(
            Epoch(epoch + ahead), Index(last + ahead), follower.log.last_epoch, transfer=transfer
        )
        follower.on_message(candidate, vote)

    def hear() -> None:
        ask(other, 1, transfer=True)
        assert follower.is_busy
        ask(other, 3, transfer=False)
        heartbeat = Heartbeat(1 << 40, 1, 0, 0, 1, [(group, Epoch(epoch + 2))])
        body = encode_control(Kind.HEARTBEAT, heartbeat)
        follower.host.inbound.on_message(leader.self_id, Lane.CONTROL, memoryview(body))
        answer = follower.host.liveness.contacts.follow_session(leader.self_id).answer(heartbeat)
        assert not answer.refused

    assert host.process is not None
    host.process.run_now(hear)
    assert world.scheduler.run_until_true(
        lambda: not follower.is_busy, limit_us=world.scheduler.now_us + 5_000 * MS
    )
    assert (follower.epoch, follower.leader_id) == (epoch + 2, leader.self_id)


def test_a_time_out_that_had_to_wait_is_passed_over_if_a_leader_was_heard_meanwhile() -> None:
    """Who has no other voter beside it would lead at once."""
    world = started(plain_scenario())
    leader = leader_of(world)
    follower, other = (replica for replica in world.cluster.replicas() if replica is not leader)
    for broker in (leader.self_id, other.self_id):
        world.hosts[broker].on_down = None
        world.hosts[broker].kill()
    world.scheduler.run_until(world.scheduler.now_us + 1_000 * MS)
    host = world.hosts[follower.self_id]
    host.disk.faults.slow_factor = 1_000
    epoch = Epoch(follower.epoch + 1)
    last = follower.log.last_index

    def hear() -> None:
        follower.raft.state.configuration = Configuration((follower.self_id,))
        order = VoteRequest(epoch, last, follower.log.last_epoch, transfer=True)
        follower.on_message(leader.self_id, order)
        assert follower.is_busy
        follower.on_election_timeout()
        heartbeat = Heartbeat(1 << 40, 1, 0, 0, 1, [(follower.group, epoch)])
        body = encode_control(Kind.HEARTBEAT, heartbeat)
        follower.host.inbound.on_message(leader.self_id, Lane.CONTROL, memoryview(body))
        answer = follower.host.liveness.contacts.follow_session(leader.self_id).answer(heartbeat)
        assert not answer.refused

    assert host.process is not None
    host.process.run_now(hear)
    assert world.scheduler.run_until_true(
        lambda: not follower.is_busy, limit_us=world.scheduler.now_us + 5_000 * MS
    )
    assert (follower.epoch, follower.leader_id) == (epoch, leader.self_id)


def forgotten(seed: int) -> None:
    """A candidate's refusal is held up until its receiver hears the leader again, which had been
    stopped; it carries a later epoch. Then the leader is cut off, and counts on its promise."""
    world = started(plain_scenario(seed=seed))
    world.scheduler.run_until(world.scheduler.now_us + 2_000 * MS)
    old = leader_of(world)
    one, other = (replica for replica in world.cluster.replicas() if replica is not old)
    epoch = old.epoch
    world.hosts[old.self_id].pause()
    assert world.scheduler.run_until_true(
        lambda: Role.CANDIDATE in (one.raft.role, other.raft.role),
        limit_us=world.scheduler.now_us + 3_000 * MS,
    )
    candidate, voter = (one, other) if one.raft.role == Role.CANDIDATE else (other, one)
    for broker in (voter.self_id, old.self_id):
        world.fabric.cut(candidate.self_id, broker)
    refused = candidate.host.durable.candidacy_count
    assert world.scheduler.run_until_true(
        lambda: voter.raft.role == Role.PRECANDIDATE,
        limit_us=world.scheduler.now_us + 3_000 * MS,
    )
    world.scheduler.run_until(world.scheduler.now_us + 5 * MS)
    assert (voter.epoch, candidate.host.durable.candidacy_count) == (epoch, refused)
    world.hosts[old.self_id].resume()
    assert world.scheduler.run_until_true(
        lambda: old.can_serve_reads and voter.leader_id == old.self_id,
        limit_us=world.scheduler.now_us + 500 * MS,
    )
    world.fabric.heal(candidate.self_id, voter.self_id)
    assert world.scheduler.run_until_true(
        lambda: voter.epoch > epoch, limit_us=world.scheduler.now_us + 3_000 * MS
    )
    cut(world, old.self_id, voter.self_id)
    assert old.can_serve_reads
    assert_never_stale(world, old, 2_000)
    assert run_until_led(world, limit_ms=5_000) is not None
    assert leader_of(world) is not old


@pytest.mark.parametrize("seed", range(1, 11))
def test_who_is_told_of_a_later_epoch_keeps_what_it_promised(seed: int) -> None:
    forgotten(seed)


def test_voters_that_forget_whom_they_have_left_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_whom_one_has_left(monkeypatch)
    with pytest.raises(AssertionError, match="answers up to"):
        forgotten(1)


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_leader_that_hears_that_it_was_left_binds_nobody(seed: int) -> None:
    """It says that it leads no more: nobody waits until it could not count on them anyway."""
    world = started(plain_scenario(seed=seed))
    world.scheduler.run_until(world.scheduler.now_us + 2_000 * MS)
    old = leader_of(world)
    epoch = old.epoch
    voter, other = (replica for replica in world.cluster.replicas() if replica is not old)
    process = world.hosts[voter.self_id].process
    assert process is not None
    refusal = VoteResponse(Epoch(epoch + 1), granted=False)
    process.run_now(lambda: voter.on_message(other.self_id, refusal))
    assert voter.epoch > epoch
    timeout_ms = world.scenario.settings.election_timeout_ms
    assert world.scheduler.run_until_true(
        lambda: leader_of_later(world, epoch),
        limit_us=world.scheduler.now_us + timeout_ms // 2 * MS,
    )


def leader_of_later(world: World, epoch: Epoch) -> bool:
    return any(one.epoch > epoch and one.can_serve_reads for one in world.cluster.replicas())


def asked_in_vain(seed: int) -> None:
    """Somebody asks around while the leader is stopped, and answers its heartbeat; before its core
    has met the leader again it is told that it would be elected. Then that is cut off from it."""
    world = started(plain_scenario(seed=seed))
    world.scheduler.run_until(world.scheduler.now_us + 2_000 * MS)
    old = leader_of(world)
    others = [replica for replica in world.cluster.replicas() if replica is not old]
    world.hosts[old.self_id].pause()
    assert world.scheduler.run_until_true(
        lambda: any(one.raft.role == Role.PRECANDIDATE for one in others),
        limit_us=world.scheduler.now_us + 3_000 * MS,
    )
    others.sort(key=lambda one: one.raft.role != Role.PRECANDIDATE)
    candidate, other = others
    cut(world, old.self_id, other.self_id)
    world.fabric.cut(other.self_id, candidate.self_id)
    world.hosts[old.self_id].resume()
    assert world.scheduler.run_until_true(
        lambda: old.can_serve_reads, limit_us=world.scheduler.now_us + 40 * MS
    )
    assert candidate.raft.role == Role.PRECANDIDATE
    cut(world, old.self_id, candidate.self_id)
    world.fabric.heal(other.self_id, candidate.self_id)
    assert_never_stale(world, old, 3_000)
    assert leader_of(world) is not old


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_candidate_that_hears_the_leader_again_does_not_vote_for_itself(seed: int) -> None:
    asked_in_vain(seed)


def test_candidates_that_vote_for_themselves_whoever_leads_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vote_for_oneself_whoever_leads(monkeypatch)
    with pytest.raises(AssertionError, match="answers up to"):
        for seed in range(1, 11):
            asked_in_vain(seed)


@pytest.mark.parametrize("seed", range(1, 6))
def test_who_is_left_as_the_only_voter_and_starts_anew_keeps_what_it_promised(seed: int) -> None:
    """It needs nobody to lead. But its leader, which is being removed, does not know yet that it
    has the last word, and counts on what it answered before it was killed."""
    world = started(plain_scenario(seed=seed))
    world.scheduler.run_until(world.scheduler.now_us + 2_000 * MS)
    old = leader_of(world)
    left = next(replica for replica in world.cluster.replicas() if replica is not old)
    process, host = world.hosts[old.self_id].process, world.hosts[left.self_id]
    assert process is not None
    process.run_now(lambda: old.change_configuration(voters=[left.self_id], observers=[]))
    assert world.scheduler.run_until_true(
        lambda: left.configuration.all_voters == (left.self_id,),
        limit_us=world.scheduler.now_us + 1_000 * MS,
    )
    cut(world, left.self_id, old.self_id)
    world.scheduler.run_until(world.scheduler.now_us + 20 * MS)
    host.on_down = None
    host.kill()
    assert old.can_serve_reads
    host.start()
    assert_never_stale(world, old, 3_000)
    assert leader_of(world).self_id == left.self_id
