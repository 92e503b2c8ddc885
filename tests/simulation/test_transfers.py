"""Leadership that is handed over under load (design section 5; Raft thesis 3.10)."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import pytest
from tests.simulation.plain import plain_scenario, started

from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.records.batch import iterate_headers
from strandline.records.record import Record, build_batch
from strandline.replication.appender import AppendResult
from strandline.replication.replica import Replica
from strandline.simulation.world import World

MS = 1_000
RECORDS = [Record(offset_delta=0, key=None, value=b"x")]


def run_for(world: World, ms: int) -> None:
    world.scheduler.run_until(world.scheduler.now_us + ms * MS)


def leader_of(world: World) -> Replica:
    (leader,) = (replica for replica in world.replicas() if replica.is_serving)
    return leader


def replicate(replica: Replica, results: list[AppendResult], *, acks: int) -> None:
    batch = build_batch(RECORDS)
    replica.replicate([batch], list(iterate_headers(batch)), acks=acks, done=results.append)


@pytest.mark.parametrize("acks", [-1, 1])
def test_what_is_appended_in_the_same_pass_does_not_keep_the_next_leader_from_standing(
    acks: int,
) -> None:
    world = started(plain_scenario(one_way_us=5_000, jitter_ratio=0.5))
    for number in range(10):
        run_for(world, 500)
        old = leader_of(world)
        to = [broker for broker in world.scenario.brokers if broker != old.self_id][number % 2]
        results: list[AppendResult] = []

        def hand_over(
            old: Replica = old, to: BrokerId = to, results: list[AppendResult] = results
        ) -> None:
            replicate(old, results, acks=acks)
            old.transfer_leadership(to)
            replicate(old, results, acks=acks)

        process = world.hosts[old.self_id].process
        assert process is not None
        process.run_now(hand_over)
        run_for(world, 100)
        assert leader_of(world).self_id == to
        # Each is written here before, or not at all: its client asks the new leader.
        assert len(results) == 2
        assert {one.error_code for one in results} <= {Error.NONE, Error.NOT_LEADER_OR_FOLLOWER}


@pytest.mark.parametrize("is_told", [False, True])
def test_what_waits_for_a_transfer_that_comes_to_nothing_is_answered(is_told: bool) -> None:
    """Who was told to stand, and may do so late, keeps the old leader from leading on as it is."""
    world = started(plain_scenario(one_way_us=5_000, jitter_ratio=0.0))
    run_for(world, 500)
    old = leader_of(world)
    to = next(broker for broker in world.scenario.brokers if broker != old.self_id)
    process = world.hosts[old.self_id].process
    assert process is not None
    world.hosts[to].pause()
    results: list[AppendResult] = []
    if not is_told:
        process.run_now(lambda: replicate(old, results, acks=-1))
        run_for(world, 100)
        assert [one.error_code for one in results] == [Error.NONE]
    waiting: list[AppendResult] = []

    def hand_over() -> None:
        replicate(old, waiting, acks=-1)
        old.transfer_leadership(to)

    process.run_now(hand_over)
    run_for(world, 1_000)
    assert waiting == []
    run_for(world, 3_000)
    expected = Error.NOT_LEADER_OR_FOLLOWER if is_told else Error.NONE
    assert [one.error_code for one in waiting] == [expected]
    assert leader_of(world) is old


ONE_WAY_US = 10_000
FLUSH_US = 500
INTERVAL_US = MS


def stall_us(world: World, old: Replica, to: BrokerId) -> int:
    """The longest time without an answer to a producer that writes with acks=all while leadership
    moves, beyond the time between two writes. It knows at once who leads."""
    answered: list[int] = []

    def on_done(result: AppendResult) -> None:
        if result.error_code == Error.NONE:
            answered.append(world.scheduler.now_us)

    def write_on(until_us: int) -> None:
        while world.scheduler.now_us < until_us:
            leaders = [one for one in world.replicas() if one.is_leader]
            if leaders:
                leader = max(leaders, key=lambda one: one.epoch)
                on(world, leader.self_id, partial(write, leader, on_done))
            world.scheduler.run_until(world.scheduler.now_us + INTERVAL_US)

    write_on(world.scheduler.now_us + 200 * MS)
    on(world, old.self_id, lambda: old.transfer_leadership(to))
    write_on(world.scheduler.now_us + 400 * MS)
    assert leader_of(world).self_id == to
    return max(later - before for before, later in pairwise(answered)) - INTERVAL_US


def write(replica: Replica, done: Callable[[AppendResult], None]) -> None:
    batch = build_batch(RECORDS)
    replica.replicate([batch], list(iterate_headers(batch)), acks=-1, done=done)


def on(world: World, broker: BrokerId, work: Callable[[], None]) -> None:
    """Have a broker do it."""
    process = world.hosts[broker].process
    assert process is not None
    process.run_now(work)


@pytest.mark.parametrize("brokers", [3, 5])
def test_a_transfer_under_load_costs_a_producer_three_round_trips_and_a_half(brokers: int) -> None:
    """One until the next leader has what is under way, a half for the order to stand, one for the
    votes, one for the first entry, which probes and lets nothing pass; the rest are flushes."""
    scenario = plain_scenario(
        brokers=brokers, one_way_us=ONE_WAY_US, jitter_ratio=0.0, flush_us=(FLUSH_US, FLUSH_US)
    )
    world = started(scenario)
    run_for(world, 500)
    old = leader_of(world)
    to = next(broker for broker in scenario.brokers if broker != old.self_id)
    assert stall_us(world, old, to) <= 7 * ONE_WAY_US + 6 * FLUSH_US
