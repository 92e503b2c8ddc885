"""What a network, a clock and a disk are said to do to a cluster they do, and then no more.

Why:    a fault that strikes nothing any more would be counted as one that was survived."""

import random
from dataclasses import replace
from itertools import permutations
from statistics import mean

import pytest
from tests.simulation.plain_scenario import plain_scenario, run_until_led, started

from strandline.base.network import Lane
from strandline.model.ids import BrokerId
from strandline.simulation.disk.disk import SimDisk
from strandline.simulation.faults.fault_targets import End
from strandline.simulation.faults.faults import CACHE, FAULTS
from strandline.simulation.faults.kinds import FAULT_KINDS
from strandline.simulation.network.link import RETRANSMIT_LEAST_US, Link, Pipe
from strandline.simulation.scenarios.scenario import PlannedFault, ProducerPlan, Scenario
from strandline.simulation.swarm.outage_swarm import draw_outages
from strandline.simulation.swarm.swarm import run_scenario
from strandline.simulation.swarm.tiered_swarm import draw_tiered
from strandline.simulation.swarm.variations import draw
from strandline.simulation.world.world import World

MS = 1_000
PRODUCER = ProducerPlan("p", plain_scenario().groups[0].group, -1, False, 5, 4_000)


def begun(world: World, kind: str, seed: int = 1) -> End:
    """A fault that has struck; how to end it."""
    end = FAULTS[kind](world.cluster, random.Random(seed))
    assert end is not None, "there was nothing to strike"
    return end


def advance(world: World, ms: int) -> None:
    world.scheduler.run_until(world.scheduler.now_us + ms * MS)


def ways(world: World) -> dict[tuple[BrokerId, BrokerId], Link]:
    return {pair: world.fabric.link(*pair) for pair in permutations(world.scenario.brokers, 2)}


def times_us(link: Link) -> list[int]:
    rng = random.Random(1)
    return [link.travel_us(rng) for _ in range(400)]


def walls_ms(world: World) -> list[int]:
    return [host.clock.wall_offset_ms for host in world.hosts.values()]


def writing(scenario: Scenario) -> World:
    world = started(scenario)
    for producer in world.producers:
        producer.start()
    advance(world, 200)
    return world


def acknowledged(world: World) -> int:
    return sum(producer.acknowledged_count for producer in world.producers)


# ---- what a scenario says of all the time ----------------------------------------------------


def test_messages_are_under_way_for_different_times() -> None:
    world = World(plain_scenario(one_way_us=10_000, jitter_ratio=0.5))
    for link in ways(world).values():
        found = times_us(link)
        assert min(found) >= 10_000
        assert max(found) < 15_000
        assert len(set(found)) > 300
    steady = World(plain_scenario(one_way_us=10_000, jitter_ratio=0.0))
    assert {one for link in ways(steady).values() for one in times_us(link)} == {10_000}


def test_some_messages_are_lost_and_come_late() -> None:
    world = World(plain_scenario(one_way_us=10_000, jitter_ratio=0.0, loss_ratio=0.05))
    for link in ways(world).values():
        late = [one for one in times_us(link) if one >= RETRANSMIT_LEAST_US]
        assert 5 < len(late) < 40


def test_clocks_go_apart() -> None:
    drifts = (-5_000, 0, 5_000)
    world = World(replace(plain_scenario(), drift_ppm=drifts))
    before = [host.clock.local_us() for host in world.hosts.values()]
    advance(world, 10_000)
    gone = [
        host.clock.local_us() - begun_us
        for host, begun_us in zip(world.hosts.values(), before, strict=True)
    ]
    assert gone == [9_950_000, 10_000_000, 10_050_000]


def test_timers_go_by_the_clock_of_their_host() -> None:
    """Of two that wait for the same, who is too slow waits longer."""
    world = started(replace(plain_scenario(), drift_ppm=(-200_000, 0, 200_000)))
    rung: dict[BrokerId, int] = {}
    for broker, host in world.hosts.items():
        assert host.program is not None
        clock = host.program.replication.clock
        clock.call_later(1_000, lambda b=broker: rung.setdefault(b, world.scheduler.now_us))  # type: ignore[misc]
    begun_us = world.scheduler.now_us
    advance(world, 2_000)
    waited = [round((rung[broker] - begun_us) / 1e6, 2) for broker in world.scenario.brokers]
    assert waited == [1.25, 1.0, 0.83]


def test_the_swarm_draws_all_of_it() -> None:
    drawn = [draw(seed) for seed in range(1, 60)]
    assert any(scenario.jitter_ratio for scenario in drawn)
    assert any(scenario.loss_ratio for scenario in drawn)
    assert any(min(scenario.drift_ppm) < 0 < max(scenario.drift_ppm) for scenario in drawn)


# ---- what begins and ends --------------------------------------------------------------------


def test_a_wall_clock_jumps_and_nothing_else_does() -> None:
    world = started(plain_scenario())
    local = [host.clock.local_us() for host in world.hosts.values()]
    assert walls_ms(world) == [0, 0, 0]
    begun(world, "wall-clock-jump")
    assert sorted(map(bool, walls_ms(world))) == [False, False, True]
    assert [host.clock.local_us() for host in world.hosts.values()] == local
    (jumped,) = (host for host in world.hosts.values() if host.clock.wall_offset_ms)
    other = next(host for host in world.hosts.values() if host is not jumped)
    assert jumped.program is not None
    assert other.program is not None
    seen = [host.program.replication.clock.wall_ms() for host in (jumped, other)]
    assert seen[0] - seen[1] == jumped.clock.wall_offset_ms


def test_a_full_disk_refuses_writes_and_takes_them_again() -> None:
    world = writing(plain_scenario(producers=(PRODUCER,)))
    end = begun(world, "full-disk")
    advance(world, 3_000)
    refused = [host for host in world.hosts.values() if host.disk.counters.full_count]
    assert len(refused) == 1
    end()
    assert not refused[0].disk.faults.foreign_bytes
    advance(world, 3_000)
    count, before = refused[0].disk.counters.full_count, acknowledged(world)
    advance(world, 1_000)
    assert refused[0].disk.counters.full_count == count
    assert acknowledged(world) > before
    assert run_until_led(world, limit_ms=1_000) is not None


def test_a_full_cache_refuses_its_files_and_no_others() -> None:
    world = writing(replace(plain_scenario(), producers=(PRODUCER,)))
    end = begun(world, "full-cache")
    (host,) = (one for one in world.hosts.values() if one.disk.faults.full_directory)
    assert host.process is not None
    disk = SimDisk(host.disk, host.process)
    disk.make_directories(CACHE.rstrip("/"))
    file = disk.open(f"{CACHE}a", create=True)
    with pytest.raises(OSError, match="No space"):
        file.pwrite([b"1"], 0)
    count = acknowledged(world)
    advance(world, 1_000)
    assert acknowledged(world) > count
    end()
    file.pwrite([b"1"], 0)


def test_a_store_loses_segments_of_one_of_two_buckets() -> None:
    scenario = replace(draw_tiered(1), bucket_regions=("east", "west"))
    world = World(scenario)
    first, second = world.cluster.buckets.buckets.values()
    assert FAULTS["lost-objects"](world.cluster, random.Random(1)) is None
    for bucket in (first, second):
        bucket.put("c/t/0/a.segment", b"1")
        bucket.put("c/t/0/pages/1", b"1")
    begun(world, "lost-objects")
    assert first.names() == ["c/t/0/pages/1"]
    assert first.lost == {"c/t/0/a.segment"}
    assert len(second.names()) == 2


def test_a_cut_of_one_way_leaves_the_other() -> None:
    world = started(plain_scenario())
    end = begun(world, "one-way-cut")
    ((source, target),) = (pair for pair, link in ways(world).items() if link.is_cut)
    heard = dict.fromkeys(permutations(world.scenario.brokers, 2), 0)

    class Counting:
        """Sees what is delivered, replies included."""

        def on_sent(
            self, sender: BrokerId, peer: BrokerId, lane: Lane, *, connection: int, data: bytes
        ) -> None:
            """Not counted."""

        def on_delivered(
            self, sender: BrokerId, receiver: BrokerId, lane: Lane, data: bytes
        ) -> None:
            heard[sender, receiver] += 1

        def on_way_changed(self, here: BrokerId, peer: BrokerId) -> None:
            """Not counted."""

    world.fabric.recorder = Counting()
    advance(world, 2_000)
    assert heard[source, target] == 0
    assert heard[target, source] > 0
    end()
    advance(world, 2_000)
    assert heard[source, target] > 0
    assert not any(link.is_cut for link in ways(world).values())


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_slow_link_is_slower_until_it_ends(seed: int) -> None:
    world = World(plain_scenario(one_way_us=10_000))
    usual = {pair: mean(times_us(link)) for pair, link in ways(world).items()}
    end = begun(world, "slow-link", seed)
    slow = [p for p, link in ways(world).items() if mean(times_us(link)) > 2.9 * usual[p]]
    assert len(slow) == 1
    end()
    assert {pair: mean(times_us(link)) for pair, link in ways(world).items()} == usual


def test_a_lossy_link_has_a_fifth_come_late_until_it_ends() -> None:
    world = World(plain_scenario(one_way_us=10_000))
    usual = {pair: times_us(link) for pair, link in ways(world).items()}
    end = begun(world, "lossy-link")
    late = {
        pair: sum(one >= RETRANSMIT_LEAST_US for one in times_us(link))
        for pair, link in ways(world).items()
    }
    assert sorted(map(bool, late.values())) == [False] * 5 + [True]
    assert 50 < max(late.values()) < 110
    end()
    assert {pair: times_us(link) for pair, link in ways(world).items()} == usual


def test_in_a_black_hole_what_is_sent_vanishes_until_another_connection() -> None:
    world = started(plain_scenario())
    pipes = {pair: pipes_between(world, *pair) for pair in ways(world)}
    begun(world, "black-hole")
    swallowed = {pair for pair, found in pipes.items() if any(one.is_swallowed for one in found)}
    assert len(swallowed) == 2
    assert len({frozenset(pair) for pair in swallowed}) == 1
    old = [pipe for pair in swallowed for pipe in pipes[pair]]
    advance(world, 25_000)  # Each broker says something over its own connection every 10 s.
    assert all(pipe.is_broken for pipe in old), "nobody had anything to say to the other"
    assert not any(
        pipe.is_swallowed
        for broker in world.scenario.brokers
        for pipe in world.fabric.pipes_of(broker)
    )
    assert run_until_led(world, limit_ms=5_000) is not None


def test_connections_that_are_reset_are_opened_again() -> None:
    world = started(plain_scenario())
    before = {pair: pipes_between(world, *pair) for pair in ways(world)}
    begun(world, "reset")
    broken = [pair for pair, pipes in before.items() if any(one.is_broken for one in pipes)]
    ((source, target),) = broken
    assert all(one.is_broken for one in before[source, target])
    advance(world, 2_000)
    again = pipes_between(world, source, target)
    assert again and not any(one.is_broken for one in again)
    assert {pair: pipes for pair in before if (pipes := pipes_between(world, *pair))} == {
        **before,
        (source, target): again,
    }


def test_what_is_delivered_late_comes_though_its_connection_is_gone() -> None:
    world = writing(plain_scenario(producers=(PRODUCER,), one_way_us=20_000))
    before = [pipe for pair in ways(world) for pipe in pipes_between(world, *pair)]
    late: list[Pipe] = []
    for seed in range(20):
        if not late:
            begun(world, "late-delivery", seed)
            late = [pipe for pipe in before if pipe.late_count]
    assert late, "a leader that is written to has something under way"
    for pipe in late:
        assert pipe.is_broken
        assert len(pipe._under_way) == pipe.late_count
        due_us = [segment.event.time_us for segment in pipe._under_way if segment.event]
        assert min(due_us) > world.scheduler.now_us
        world.scheduler.run_until(max(due_us))
        assert (len(pipe._under_way), pipe.lost_count) == (0, 0)
    advance(world, 3_000)
    assert run_until_led(world, limit_ms=5_000) is not None


def test_a_paused_broker_does_nothing_until_it_goes_on_in_the_same_process() -> None:
    world = started(plain_scenario())
    before = {broker: host.program for broker, host in world.hosts.items()}
    end = begun(world, "pause")
    rung: set[BrokerId] = set()
    for broker, program in before.items():
        assert program is not None
        program.replication.clock.call_later(100, lambda b=broker: rung.add(b))  # type: ignore[misc]
    advance(world, 3_000)
    (paused,) = set(world.hosts) - rung
    assert run_until_led(world, limit_ms=5_000) is not None, "the others go on without it"
    end()
    advance(world, 1)
    assert paused in rung
    assert {broker: host.program for broker, host in world.hosts.items()} == before


def test_flushes_of_a_slow_disk_take_longer_until_it_ends() -> None:
    world = World(plain_scenario(flush_us=(1_000, 1_000)))

    def fastest_us() -> list[int]:
        disks = [host.disk for host in world.hosts.values()]
        return sorted(min(disk.flush_duration_us() for _ in range(50)) for disk in disks)

    assert fastest_us() == [1_000] * 3
    end = begun(world, "slow-disk")
    *others, slowest = fastest_us()
    assert others == [1_000] * 2
    assert slowest in (10_000, 100_000)
    end()
    assert fastest_us() == [1_000] * 3


def test_a_drill_is_none_where_there_is_nobody_to_ask_for_it() -> None:
    """Groups alone have no broker that could cut itself off."""
    world = started(plain_scenario())
    assert FAULTS["region-drill"](world.cluster, random.Random(1)) is None


def pipes_between(world: World, source: BrokerId, target: BrokerId) -> list[Pipe]:
    """The connections that `source` has to `target`."""
    return [
        pipe for pipe in world.fabric.pipes_of(source) if world.fabric._pipes.get(pipe) == target
    ]


def test_every_kind_has_a_function_and_every_function_a_kind() -> None:
    assert list(FAULTS) == list(FAULT_KINDS)


@pytest.mark.simulation
def test_whatever_takes_the_power_says_so() -> None:
    """What consumers saw of acks=1 may be gone then, and only then."""
    silent = [kind for kind, one in FAULT_KINDS.items() if not one.loses_page_cache]
    drawn = replace(draw_outages(1), changes=())
    for kind in silent:
        rng = random.Random(kind)
        faults = tuple(
            PlannedFault(at_ms, kind, 300, rng.getrandbits(32)) for at_ms in range(300, 2_300, 400)
        )
        outcome = run_scenario(replace(drawn, faults=faults, active_ms=3_000))
        assert not [one for one in outcome.trace if "loses power" in one], kind
