"""Leadership that is handed over under load (design section 5; Raft thesis 3.10)."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import pytest
from tests.simulation.plain_scenario import plain_scenario, run_until_led, started

from strandline.model.ids import BrokerId, GroupId
from strandline.protocol.errors import Error
from strandline.raft.follower import appends
from strandline.records.batch import iterate_headers
from strandline.records.record import Record, build_batch
from strandline.replication.leader.requests import AppendResult
from strandline.replication.replica.replica import Replica
from strandline.replication.settings import ReplicationSettings
from strandline.simulation.scenarios.scenario import ProducerPlan
from strandline.simulation.world.world import World

MS = 1_000
RECORDS = [Record(offset_delta=0, key=None, value=b"x")]


def run_for(world: World, ms: int) -> None:
    world.scheduler.run_until(world.scheduler.now_us + ms * MS)


def leader_of(world: World) -> Replica:
    (leader,) = (replica for replica in world.cluster.replicas() if replica.is_serving)
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


def test_what_waits_for_a_transfer_that_comes_to_nothing_is_answered() -> None:
    """Who handed over leads again, and appends what was held."""
    world = started(plain_scenario(one_way_us=5_000, jitter_ratio=0.0))
    run_for(world, 500)
    old = leader_of(world)
    to = next(broker for broker in world.scenario.brokers if broker != old.self_id)
    world.hosts[to].pause()
    waiting: list[AppendResult] = []

    def hand_over() -> None:
        old.transfer_leadership(to)
        replicate(old, waiting, acks=-1)

    on(world, old.self_id, hand_over)
    run_for(world, 500)
    assert waiting == []
    run_for(world, 500)
    assert [one.error_code for one in waiting] == [Error.NONE]
    assert leader_of(world) is old


def test_who_asks_the_old_leader_meanwhile_is_told_as_soon_as_it_hears_who_leads() -> None:
    world = started(plain_scenario(one_way_us=10_000, jitter_ratio=0.0))
    run_for(world, 500)
    old = leader_of(world)
    to = next(broker for broker in world.scenario.brokers if broker != old.self_id)
    heard: list[tuple[int, BrokerId]] = []
    begun_us = world.scheduler.now_us

    def on_done(result: AppendResult) -> None:
        assert result.error_code == Error.NOT_LEADER_OR_FOLLOWER
        heard.append((world.scheduler.now_us - begun_us, old.leader_id))

    on(world, old.self_id, lambda: old.transfer_leadership(to))
    run_for(world, 5)
    on(world, old.self_id, partial(write, old, on_done))
    run_for(world, 100)
    ((took_us, leader),) = heard
    assert leader == to
    assert took_us <= 25 * MS


ONE_WAY_US = 10_000
FLUSH_US = 500
INTERVAL_US = MS
BYTES_US = 10
"""What the bytes of a message take, beside their way."""


def stall_us(world: World, old: Replica, to: BrokerId) -> int:
    """The longest time without an answer to a producer that writes with acks=all while leadership
    moves, beyond the time between two writes. It knows at once who leads."""
    answered: list[int] = []

    def on_done(result: AppendResult) -> None:
        if result.error_code == Error.NONE:
            answered.append(world.scheduler.now_us)

    def write_on(until_us: int) -> None:
        while world.scheduler.now_us < until_us:
            leaders = [one for one in world.cluster.replicas() if one.is_leader]
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


@pytest.mark.parametrize("brokers", [3, 4, 5, 7])
def test_a_transfer_under_load_costs_a_producer_half_a_round_trip(brokers: int) -> None:
    """What was under way is acknowledged a half after the next leader was told to stand. It leads
    by then, and needs one for its first entries. The rest are flushes: of the next one's vote, of
    the followers' epoch, and of the old leader's vote; or, where votes were promised, what is left
    until the next write."""
    assert stalled_by(brokers) <= ONE_WAY_US + 3 * FLUSH_US + BYTES_US


@pytest.mark.parametrize("brokers", [4, 5])
def test_without_promises_it_costs_a_whole_one(
    brokers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Voters of an earlier release do not know of them: they vote by order when it is given."""
    monkeypatch.setattr(appends, "delegate_vote", lambda state, leader: None)
    stalled_us = stalled_by(brokers)
    limit_us = 3 * FLUSH_US + BYTES_US
    assert ONE_WAY_US + limit_us < stalled_us <= 2 * ONE_WAY_US + limit_us


def stalled_by(brokers: int) -> int:
    """See `stall_us`; of so many brokers, all equally far apart."""
    scenario = plain_scenario(
        brokers=brokers,
        one_way_us=ONE_WAY_US,
        jitter_ratio=0.0,
        flush_us=(FLUSH_US, FLUSH_US),
        settings=ReplicationSettings(relays=False),  # Nobody is nearer to another one.
    )
    world = started(scenario)
    run_for(world, 500)
    old = leader_of(world)
    to = next(broker for broker in scenario.brokers if broker != old.self_id)
    stalled_us = stall_us(world, old, to)
    assert world.checker.violation is None
    return stalled_us


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_transfer_of_a_stretched_group_costs_less_than_a_round_trip(seed: int) -> None:
    """Five voters, 2 + 2 + 1 over three regions: to another one, or within one."""
    scenario = plain_scenario(
        seed=seed,
        brokers=5,
        one_way_us=ONE_WAY_US,
        near_one_way_us=ONE_WAY_US // 40,
        jitter_ratio=0.0,
        flush_us=(FLUSH_US, FLUSH_US),
    )
    regions = dict(zip(scenario.brokers, scenario.regions, strict=True))
    stalled_us: dict[bool, list[int]] = {False: [], True: []}
    for to in scenario.brokers:
        world = started(scenario)
        run_for(world, 500)
        old = leader_of(world)
        if to != old.self_id:
            is_far = regions[to] != regions[old.self_id]
            stalled_us[is_far].append(stall_us(world, old, to))
        assert world.checker.violation is None
    assert [len(stalled_us[is_far]) for is_far in (False, True)] == [1, 3]
    # One more way within a region: to who is served through a relay.
    assert max(stalled_us[True]) <= 1.5 * ONE_WAY_US + ONE_WAY_US // 40 + BYTES_US
    assert max(stalled_us[False]) <= 0.5 * ONE_WAY_US


# ---- transfers that go wrong ---------------------------------------------------------------------

PRODUCER = ProducerPlan("p", GroupId(1), -1, False, 20, 50)
TELLING_MS = range(0, 30, 3)
"""The order is under way for 10 ms, and so is all that follows from it."""


def writing(seed: int = 1, *, brokers: int = 3) -> tuple[World, Replica, BrokerId]:
    """A world with a producer that writes all the time; its leader, and who is to lead next."""
    scenario = plain_scenario(
        seed=seed, brokers=brokers, one_way_us=ONE_WAY_US, producers=(PRODUCER,)
    )
    world = started(scenario)
    for producer in world.producers:
        producer.start()
    run_for(world, 1_000)
    old = leader_of(world)
    return world, old, next(broker for broker in scenario.brokers if broker != old.self_id)


def led_again(world: World, *, limit_ms: int) -> Replica:
    """Whoever leads in the end, when nothing has been lost and writes go on."""
    written = world.producers[0].acknowledged_count
    assert run_until_led(world, limit_ms=limit_ms) is not None
    run_for(world, 2_000)  # A producer asks again after 1.5 s.
    assert world.checker.violation is None
    assert world.producers[0].acknowledged_count > written
    return leader_of(world)


@pytest.mark.parametrize(
    ("brokers", "victim", "after_ms"),
    [
        *((3, victim, after_ms) for victim in ("old", "next") for after_ms in TELLING_MS),
        *((5, victim, ms) for victim in ("old", "next", "voter") for ms in range(0, 54, 6)),
    ],
)
@pytest.mark.parametrize("loses_power", [False, True])
def test_who_dies_during_a_transfer_takes_nothing_along(
    brokers: int, victim: str, after_ms: int, *, loses_power: bool
) -> None:
    world, old, to = writing(seed=after_ms + 1, brokers=brokers)
    voter = next(one for one in world.scenario.brokers if one not in (old.self_id, to))
    on(world, old.self_id, lambda: old.transfer_leadership(to))
    run_for(world, after_ms)
    host = world.hosts[{"old": old.self_id, "next": to, "voter": voter}[victim]]
    host.on_down = None
    if loses_power:
        host.fail_power()
    else:
        host.kill()
    led_again(world, limit_ms=5_000)
    host.start()
    led_again(world, limit_ms=5_000)


@pytest.mark.parametrize("brokers", [3, 5])
def test_an_order_that_is_lost_costs_an_election_time_out(brokers: int) -> None:
    world, old, to = writing(brokers=brokers)
    world.fabric.cut(old.self_id, to)
    on(world, old.self_id, lambda: old.transfer_leadership(to))
    run_for(world, 50)
    assert not any(replica.is_leader for replica in world.cluster.replicas())
    run_for(world, world.scenario.settings.election_timeout_ms + 200)
    assert leader_of(world).self_id != to
    world.fabric.heal(old.self_id, to)
    led_again(world, limit_ms=5_000)


def test_a_promised_vote_is_remembered_by_a_voter_that_dies_meanwhile() -> None:
    """It would be given twice else: the order is on its way all the time."""
    world, old, to = writing(brokers=5)
    world.hosts[to].pause()
    others = [one for one in world.cluster.replicas() if one.self_id not in (old.self_id, to)]
    on(world, old.self_id, lambda: old.transfer_leadership(to))
    assert world.scheduler.run_until_true(
        lambda: not old.raft.is_leader, limit_us=world.scheduler.now_us + 100 * MS
    )
    promised = [one.self_id for one in others if one.raft.delegated_epoch]
    assert promised
    for broker in promised:
        world.hosts[broker].kill()
        if world.hosts[broker].process is None:
            world.hosts[broker].start()
    run_for(world, 100)
    for replica in world.cluster.replicas():
        if replica.self_id in promised:
            assert (replica.epoch, replica.raft.delegated_epoch) == (1, 2)
    run_for(world, 2_000)
    assert leader_of(world).epoch > 2
    world.hosts[to].resume()
    led_again(world, limit_ms=5_000)


@pytest.mark.parametrize("brokers", [3, 5])
def test_an_order_that_comes_when_another_one_leads_elects_nobody(brokers: int) -> None:
    world, old, to = writing(brokers=brokers)
    host = world.hosts[to]
    host.pause()
    on(world, old.self_id, lambda: old.transfer_leadership(to))
    run_for(world, 1_500)
    now = leader_of(world)
    host.resume()
    assert led_again(world, limit_ms=1) is now


def test_a_target_that_lost_its_disk_is_not_elected_by_an_order() -> None:
    world, old, to = writing()
    host = world.hosts[to]
    host.on_down = None
    host.lose_disk()
    on(world, old.self_id, lambda: old.transfer_leadership(to))
    host.start()
    assert led_again(world, limit_ms=5_000).self_id != to


@pytest.mark.parametrize("after_ms", TELLING_MS)
def test_members_that_change_meanwhile_lose_nothing(after_ms: int) -> None:
    world, old, to = writing(seed=after_ms + 1, brokers=5)
    third = next(one for one in world.scenario.brokers if one not in (old.self_id, to))
    others = [one for one in world.scenario.brokers if one != third]
    on(world, old.self_id, lambda: old.change_configuration(voters=others, observers=[third]))
    run_for(world, after_ms)
    if old.is_leader:
        on(world, old.self_id, lambda: old.transfer_leadership(to))
    run_for(world, 500)
    assert set(led_again(world, limit_ms=5_000).configuration.all_voters) <= {*others, third}


def test_who_was_removed_while_it_handed_over_keeps_nobody_from_standing() -> None:
    """Its heartbeats go on speaking for the epoch that is over. It may not stand itself."""
    world = started(plain_scenario(brokers=4, one_way_us=5_000, jitter_ratio=0.0))
    run_for(world, 500)
    old = leader_of(world)
    others = tuple(broker for broker in world.scenario.brokers if broker != old.self_id)
    on(world, old.self_id, lambda: old.change_configuration(voters=others, observers=()))
    assert world.scheduler.run_until_true(
        lambda: not old.configuration.is_joint and old.configuration.voters == others,
        limit_us=world.scheduler.now_us + 1_000 * MS,
    )
    world.hosts[others[0]].pause()
    on(world, old.self_id, lambda: old.transfer_leadership(others[0]))
    run_for(world, 20)
    assert not old.raft.is_leader
    run_for(world, 4_000)
    assert leader_of(world).self_id in others[1:]
