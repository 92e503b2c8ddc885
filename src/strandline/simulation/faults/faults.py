"""What can go wrong, one function for each kind of fault, one table.

Why:    the list of faults is the list of what the product promises to survive; it is read by the
        swarm, by the trace and by people.
How:    a fault begins on a world, and returns how to end it: `over` where it has ended by itself,
        None where there was nothing to strike, and nothing happened. The world draws kind, moment
        and duration, and ends everything before it asks for progress.
Owns:   nothing.
Source: design section 10; reference/reliability.md 1c (Redpanda's chaos suite, to be matched)."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from strandline.base.errors import RejectedError
from strandline.model.ids import BrokerId
from strandline.replication.host.replication import JOURNAL
from strandline.simulation.disk.damage import (
    lie,
    rot,
    rot_indexes,
    rot_journal,
    rot_tail,
    rot_while_open,
    rot_without_power,
)
from strandline.simulation.faults.client_faults import lose_answers, reset_clients, stall_requests
from strandline.simulation.faults.domain_faults import (
    cut_between_regions,
    cut_region,
    drill_region,
    fail_power_of_zone,
    flap,
    kill_observer,
    kill_zone,
    lose_a_spare_disk,
)
from strandline.simulation.faults.fault_targets import End, cut, over, strike_several
from strandline.simulation.faults.lasting_losses import lose_for_good
from strandline.simulation.faults.targeted_faults import (
    cut_after_shrinking,
    fence_late,
    forget_a_fence,
    report_early,
)
from strandline.simulation.world.scheduler import US_PER_MS

if TYPE_CHECKING:
    from strandline.simulation.world.host import SimHost
    from strandline.simulation.world.member import Member
    from strandline.simulation.world.world import World

Begin = Callable[["World", random.Random], End | None]


@dataclass(frozen=True, slots=True)
class FaultKind:
    """`duration_ms`: (least, most) until it ends. `loses_page_cache`: unflushed writes may go."""

    begin: Begin
    duration_ms: tuple[int, int] = (50, 3_000)
    loses_page_cache: bool = False


# ---- hosts -----------------------------------------------------------------------------------


def _kill(world: "World", rng: random.Random) -> End | None:
    broker = _any_up(world, rng)
    if broker is None:
        return None
    world.hosts[broker].kill()
    return lambda: world.restart(broker)


def _stay_away(world: "World", rng: random.Random) -> End | None:
    """One broker, where all others are up: they go on without it."""
    return _kill(world, rng) if all(host.is_up for host in world.hosts.values()) else None


def _fail_power(world: "World", rng: random.Random) -> End | None:
    broker = _any_up(world, rng)
    if broker is None:
        return None
    world.hosts[broker].fail_power()
    return lambda: world.restart(broker)


def _fail_power_of_region(world: "World", rng: random.Random) -> End | None:
    region = rng.choice(sorted(set(world.scenario.regions)))
    brokers = [b for b in world.scenario.brokers if world.region_of(b) == region]
    world.trace.add("world", f"region {region} loses power")
    return strike_several(world, brokers, lambda host: host.fail_power())


def _fail_power_of_all(world: "World", rng: random.Random) -> End | None:
    world.trace.add("world", "everybody loses power")
    return strike_several(world, world.scenario.brokers, lambda host: host.fail_power())


def _kill_all(world: "World", rng: random.Random) -> End | None:
    world.trace.add("world", "everybody is killed")
    return strike_several(world, world.scenario.brokers, lambda host: host.kill())


def _fail_power_of_leader(world: "World", rng: random.Random) -> End | None:
    return _strike_leader(world, rng, lambda host: host.fail_power())


def _kill_leader(world: "World", rng: random.Random) -> End | None:
    return _strike_leader(world, rng, lambda host: host.kill())


def _strike_leader(
    world: "World", rng: random.Random, strike: Callable[["SimHost[Member]"], None]
) -> End | None:
    leaders = world.leading_brokers()
    if not leaders:
        return None
    broker = rng.choice(leaders)
    strike(world.hosts[broker])
    return lambda: world.restart(broker)


def _die_in_the_middle(world: "World", rng: random.Random) -> End | None:
    """Between two system calls, or within one."""
    broker = _any_up(world, rng)
    if broker is None:
        return None
    host = world.hosts[broker]
    host.dies_of_power_failure = rng.random() < 0.5
    host.disk.faults.die_at_operation = rng.randint(1, 60)
    return lambda: world.restart(broker)


def _stop(world: "World", rng: random.Random) -> End | None:
    """In good order, as for an upgrade."""
    broker = _any_up(world, rng)
    host = None if broker is None else world.hosts[broker]
    if broker is None or host is None or host.program is None or not host.is_running:
        return None
    world.trace.add(host.name, "stops in good order")
    assert host.process is not None
    host.process.run_now(host.program.stop)
    host.kill()
    return lambda: world.restart(broker)


def _lose_disk(world: "World", rng: random.Random) -> End | None:
    broker = rng.choice(world.scenario.brokers)
    if not world.may_lose_disk(broker):
        return None
    world.lose_disk(broker)
    return lambda: world.restart(broker)


def _pause(world: "World", rng: random.Random) -> End | None:
    broker = rng.choice(world.leading_brokers() or list(world.scenario.brokers))
    host = world.hosts[broker]
    world.trace.add(host.name, "is paused")
    host.pause()

    def end() -> None:
        world.trace.add(host.name, "goes on")
        host.resume()

    return end


def _jump_wall_clock(world: "World", rng: random.Random) -> End | None:
    broker = rng.choice(world.scenario.brokers)
    jump_ms = rng.choice((-3_600_000, -5_000, 5_000, 3_600_000))
    world.trace.add(world.hosts[broker].name, f"its wall clock jumps by {jump_ms} ms")
    world.hosts[broker].clock.jump_wall(jump_ms)
    return over


# ---- network ---------------------------------------------------------------------------------


def _cut_one_way(world: "World", rng: random.Random) -> End | None:
    source, target = rng.sample(world.scenario.brokers, 2)
    return cut(world, [(source, target)])


def _cut_from_leader(world: "World", rng: random.Random) -> End | None:
    """One follower does not hear its leader; both hear everybody else."""
    for replica in world.leading_replicas(rng):
        leader = replica.self_id
        others = [broker for broker in replica.configuration.members if broker != leader]
        if others:
            follower = rng.choice(others)
            return cut(world, [(leader, follower), (follower, leader)])
    return None


def _isolate(world: "World", rng: random.Random) -> End | None:
    alone = rng.choice(world.leading_brokers() or list(world.scenario.brokers))
    others = [broker for broker in world.scenario.brokers if broker != alone]
    return cut(world, [*product([alone], others), *product(others, [alone])])


def _mute(world: "World", rng: random.Random) -> End | None:
    """It hears everything, and nobody hears it; or the other way round."""
    alone = rng.choice(world.scenario.brokers)
    others = [broker for broker in world.scenario.brokers if broker != alone]
    if rng.random() < 0.5:
        return cut(world, list(product([alone], others)))
    return cut(world, list(product(others, [alone])))


def _split(world: "World", rng: random.Random) -> End | None:
    brokers = rng.sample(world.scenario.brokers, len(world.scenario.brokers))
    size = rng.randint(1, len(brokers) - 1)
    one, other = brokers[:size], brokers[size:]
    pairs = [*product(one, other), *product(other, one)]
    end = cut(world, pairs)
    if rng.random() < 0.5:
        for source, target in pairs:
            world.fabric.reset(source, target)
    return end


def _reset(world: "World", rng: random.Random) -> End | None:
    source, target = rng.sample(world.scenario.brokers, 2)
    world.trace.add("world", f"connections from {source} to {target} are reset")
    world.fabric.reset(source, target)
    return over


def _slow_link(world: "World", rng: random.Random) -> End | None:
    source, target = rng.sample(world.scenario.brokers, 2)
    link = world.fabric.link(source, target)
    factor = rng.choice((3, 10, 50))
    world.trace.add("world", f"the link from {source} to {target} is {factor} times slower")
    link.slow_factor = factor

    def end() -> None:
        link.slow_factor = 1

    return end


def _lossy_link(world: "World", rng: random.Random) -> End | None:
    source, target = rng.sample(world.scenario.brokers, 2)
    link = world.fabric.link(source, target)
    world.trace.add("world", f"the link from {source} to {target} loses a fifth")
    link.loss_ratio = 0.2

    def end() -> None:
        link.loss_ratio = world.scenario.loss_ratio

    return end


def _swallow(world: "World", rng: random.Random) -> End | None:
    """As when a firewall between two regions forgets its connections."""
    one, other = rng.sample(world.scenario.brokers, 2)
    world.trace.add(
        "world", f"what is sent between {one} and {other} vanishes until they reconnect"
    )
    world.fabric.swallow(one, other)
    return over


def _deliver_late(world: "World", rng: random.Random) -> End | None:
    """Mostly to a leader's followers: appends that are sent again, and then come twice."""
    leaders = world.leading_brokers()
    source = rng.choice(leaders or list(world.scenario.brokers))
    target = rng.choice([one for one in world.scenario.brokers if one != source])
    if rng.random() < 0.3:
        source, target = target, source
    late_ms = rng.choice((20, 200, 2_000, 10_000))
    count = world.fabric.deliver_late(source, target, late_ms * US_PER_MS)
    world.trace.add(
        "world",
        f"{source} loses its connections to {target}; {count} messages come {late_ms} ms later",
    )
    return over


# ---- disks -----------------------------------------------------------------------------------


def _slow_disk(world: "World", rng: random.Random) -> End | None:
    broker = rng.choice(world.scenario.brokers)
    faults = world.hosts[broker].disk.faults
    # A broker opens its logs one after the other, and a consumer group has fifty of them.
    factors = (5,) if world.scenario.has_brokers else (10, 100)
    faults.slow_factor = rng.choice(factors)
    world.trace.add(world.hosts[broker].name, f"its disk is {faults.slow_factor} times slower")

    def end() -> None:
        faults.slow_factor = 1

    return end


def _fail_flush(world: "World", rng: random.Random) -> End | None:
    """What a failed flush leaves in the page cache looks sound: in half of the cases the process
    alone is started anew after it, as systemd does, and in the others the machine.

    Then it may be the journal's flush that fails, or one of each broker: they share a storage."""
    broker = rng.choice(world.scenario.brokers)
    # From random numbers of its own: histories in which nothing fails to flush stay the same.
    own = random.Random(f"failed flush of {world.scenario.seed} at {world.scheduler.now_us}")
    keeps_cache = own.random() < 0.5
    is_shared = keeps_cache and own.random() < 0.5
    path_end = JOURNAL if keeps_cache and own.random() < 0.5 else ""
    struck = [world.hosts[one] for one in (world.hosts if is_shared else (broker,))]
    for host in struck:
        host.disk.faults.fail_flush_count = 1
        host.disk.faults.fail_flush_of = path_end
        host.disk.faults.keeps_cache = keeps_cache
        host.disk.eviction_rng = random.Random(own.getrandbits(64))
        world.trace.add(host.name, f"its next flush {'of the journal ' * bool(path_end)}will fail")

    def end() -> None:
        for host in struck:
            host.disk.faults.fail_flush_count = 0
            if keeps_cache:
                host.kill()
            else:
                host.fail_power()
            world.restart(host.broker)

    return end


def _fill_disk(world: "World", rng: random.Random) -> End | None:
    broker = rng.choice(world.scenario.brokers)
    disk = world.hosts[broker].disk
    room = rng.randint(0, 20_000)
    disk.faults.foreign_bytes = disk.capacity_bytes - disk.used_bytes() - room
    world.trace.add(world.hosts[broker].name, f"its disk has {room} bytes left")

    def end() -> None:
        disk.faults.foreign_bytes = 0

    return end


# ---- operations ------------------------------------------------------------------------------


def _transfer_leadership(world: "World", rng: random.Random) -> End | None:
    for replica in world.leading_replicas(rng):
        to = rng.choice(replica.configuration.voters)
        world.trace.add(
            f"broker {replica.self_id}", f"is to hand {replica.name} over to broker {to}"
        )
        _ask(world, replica.self_id, lambda r=replica, t=to: r.transfer_leadership(t))  # type: ignore[misc]
        return over
    return None


def _change_configuration(world: "World", rng: random.Random) -> End | None:
    for replica in world.leading_replicas(rng):
        hosts = rng.sample(world.plan(replica.group).hosts, len(world.scenario.brokers))
        count = rng.randint(1, len(hosts))
        voters, observers = hosts[:count], hosts[count : count + rng.randint(0, 1)]
        if replica.log.config.compacted:
            # As those who ask for changes do: whose log may be outdated votes only afterwards.
            known = replica.configuration.all_voters
            unready = [one for one in voters if not (one in known or replica.is_ready_to_vote(one))]
            voters = [one for one in voters if one not in unready]
            observers += unready
            if not voters:
                return None
        world.trace.add(
            f"broker {replica.self_id}",
            f"is to change {replica.name} to voters {voters}, observers {observers}",
        )
        _ask(
            world,
            replica.self_id,
            lambda r=replica, v=voters, o=observers: r.change_configuration(  # type: ignore[misc]
                voters=v, observers=o, min_insync=world.plan(r.group).min_insync
            ),
        )
        return over
    return None


# ---- the table -------------------------------------------------------------------------------

FAULTS: dict[str, FaultKind] = {
    "kill": FaultKind(_kill),
    "kill-leader": FaultKind(_kill_leader),
    "absence": FaultKind(_stay_away, duration_ms=(2_000, 7_000)),
    "power-failure": FaultKind(_fail_power, loses_page_cache=True),
    "leader-power-failure": FaultKind(_fail_power_of_leader, loses_page_cache=True),
    "total-power-failure": FaultKind(_fail_power_of_all, loses_page_cache=True),
    "region-power-failure": FaultKind(_fail_power_of_region, loses_page_cache=True),
    "stop": FaultKind(_stop),
    "lost-disk": FaultKind(_lose_disk, loses_page_cache=True),
    "death-in-the-middle": FaultKind(_die_in_the_middle, loses_page_cache=True),
    "pause": FaultKind(_pause),
    "wall-clock-jump": FaultKind(_jump_wall_clock),
    "one-way-cut": FaultKind(_cut_one_way, duration_ms=(50, 12_000)),
    "cut-from-leader": FaultKind(_cut_from_leader),
    "isolation": FaultKind(_isolate, duration_ms=(50, 5_000)),
    "mute": FaultKind(_mute, duration_ms=(50, 5_000)),
    "split": FaultKind(_split, duration_ms=(50, 5_000)),
    "reset": FaultKind(_reset),
    "slow-link": FaultKind(_slow_link),
    "lossy-link": FaultKind(_lossy_link),
    "slow-disk": FaultKind(_slow_disk),
    "failed-flush": FaultKind(_fail_flush, loses_page_cache=True),
    "full-disk": FaultKind(_fill_disk),
    "leadership-transfer": FaultKind(_transfer_leadership),
    "configuration-change": FaultKind(_change_configuration),
    "kill-all": FaultKind(_kill_all, duration_ms=(50, 1_000)),
    "black-hole": FaultKind(_swallow),
    "late-delivery": FaultKind(_deliver_late),
    "bit-rot": FaultKind(rot),
    "lying-disk": FaultKind(lie, loses_page_cache=True),
    "rotten-tail": FaultKind(rot_tail, loses_page_cache=True),
    "open-rot": FaultKind(rot_while_open),
    "index-rot": FaultKind(rot_indexes),
    "journal-rot": FaultKind(rot_journal, loses_page_cache=True),
    "power-failure-rot": FaultKind(rot_without_power, loses_page_cache=True),
    "region-cut": FaultKind(cut_region, duration_ms=(300, 5_000)),
    "cut-between-regions": FaultKind(cut_between_regions, duration_ms=(300, 5_000)),
    "region-drill": FaultKind(drill_region),
    "zone-power-failure": FaultKind(fail_power_of_zone, loses_page_cache=True),
    "zone-kill": FaultKind(kill_zone, duration_ms=(300, 5_000)),
    "flapping-link": FaultKind(flap, duration_ms=(500, 4_000)),
    "observer-death": FaultKind(kill_observer, duration_ms=(100, 4_000), loses_page_cache=True),
    "spare-disk-lost": FaultKind(lose_a_spare_disk, loses_page_cache=True),
    "forgotten-fence": FaultKind(forget_a_fence, duration_ms=(3_000, 6_000), loses_page_cache=True),
    "early-report": FaultKind(report_early, duration_ms=(4_000, 7_000), loses_page_cache=True),
    "cut-after-shrink": FaultKind(cut_after_shrinking, duration_ms=(4_000, 7_000)),
    "late-fence": FaultKind(fence_late, duration_ms=(4_000, 7_000)),
    "lasting-loss": FaultKind(lose_for_good, duration_ms=(5_000, 9_000), loses_page_cache=True),
    "stalled-requests": FaultKind(stall_requests, duration_ms=(2_000, 4_000)),
    "lost-answers": FaultKind(lose_answers, duration_ms=(2_000, 4_000)),
    "client-reset": FaultKind(reset_clients),
}


def _any_up(world: "World", rng: random.Random) -> BrokerId | None:
    up = [broker for broker, host in world.hosts.items() if host.is_up]
    return rng.choice(up) if up else None


def _ask(world: "World", broker: BrokerId, command: Callable[[], None]) -> None:
    """Let a broker do something, in its own process; it may refuse."""

    def attempt() -> None:
        try:
            command()
        except RejectedError:
            world.trace.add(f"broker {broker}", "refuses")

    process = world.hosts[broker].process
    if process is not None:
        process.after(0, attempt)
