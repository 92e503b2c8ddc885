"""One function for each kind of fault, and the table that names them.

Why:    the kinds of faults are the list of what the product promises to survive.
How:    a function begins a fault on a cluster and returns how to end it: `over` if the fault has
        ended by itself, None if there was nothing to strike and nothing happened. `schedule` calls
        it, and ends every fault before the verdict.
Owns:   nothing.
Source: design section 10; reference/reliability.md 1c (Redpanda's chaos suite, to be matched)."""

import random
from collections.abc import Callable
from itertools import product

from strandline.base.errors import RejectedError
from strandline.broker.fetch.remote_log import CACHE_DIRECTORY
from strandline.model.ids import BrokerId
from strandline.replication.host.replication import JOURNAL
from strandline.simulation.faults.bucket_faults import BUCKET_FAULTS
from strandline.simulation.faults.client_faults import lose_answers, reset_clients, stall_requests
from strandline.simulation.faults.disk_faults import (
    lie,
    rot,
    rot_indexes,
    rot_journal,
    rot_tail,
    rot_while_open,
    rot_without_power,
)
from strandline.simulation.faults.domain_faults import (
    cut_between_regions,
    cut_region,
    drill_region,
    fail_power_of_zone,
    flap,
    kill_observer,
    kill_zone,
    lose_spare_disk,
)
from strandline.simulation.faults.fault_targets import End, cut, fail_several, over
from strandline.simulation.faults.lasting_losses import lose_for_good
from strandline.simulation.faults.targeted_faults import (
    cut_after_shrink,
    early_report,
    forgotten_fence,
    late_fence,
)
from strandline.simulation.world.cluster import SimCluster
from strandline.simulation.world.host import SimHost
from strandline.simulation.world.member import DATA_DIRECTORY, Member
from strandline.simulation.world.scheduler import US_PER_MS

CACHE = f"{DATA_DIRECTORY}/{CACHE_DIRECTORY}/"
Begin = Callable[[SimCluster, random.Random], End | None]


# ---- hosts -----------------------------------------------------------------------------------


def _kill(cluster: SimCluster, rng: random.Random) -> End | None:
    broker = _any_up(cluster, rng)
    if broker is None:
        return None
    cluster.hosts[broker].kill()
    return lambda: cluster.restart(broker)


def _stay_away(cluster: SimCluster, rng: random.Random) -> End | None:
    """One broker, where all others are up: they go on without it."""
    return _kill(cluster, rng) if all(host.is_up for host in cluster.hosts.values()) else None


def _fail_power(cluster: SimCluster, rng: random.Random) -> End | None:
    broker = _any_up(cluster, rng)
    if broker is None:
        return None
    cluster.hosts[broker].fail_power()
    return lambda: cluster.restart(broker)


def _fail_power_of_region(cluster: SimCluster, rng: random.Random) -> End | None:
    region = rng.choice(sorted(set(cluster.scenario.regions)))
    brokers = [b for b in cluster.scenario.brokers if cluster.scenario.region_of(b) == region]
    cluster.trace.add("world", f"region {region} loses power")
    return fail_several(cluster, brokers, lambda host: host.fail_power())


def _fail_power_of_all(cluster: SimCluster, rng: random.Random) -> End | None:
    cluster.trace.add("world", "everybody loses power")
    return fail_several(cluster, cluster.scenario.brokers, lambda host: host.fail_power())


def _kill_all(cluster: SimCluster, rng: random.Random) -> End | None:
    cluster.trace.add("world", "everybody is killed")
    return fail_several(cluster, cluster.scenario.brokers, lambda host: host.kill())


def _fail_power_of_leader(cluster: SimCluster, rng: random.Random) -> End | None:
    return _fail_leader(cluster, rng, lambda host: host.fail_power())


def _kill_leader(cluster: SimCluster, rng: random.Random) -> End | None:
    return _fail_leader(cluster, rng, lambda host: host.kill())


def _fail_leader(
    cluster: SimCluster, rng: random.Random, fail: Callable[[SimHost[Member]], None]
) -> End | None:
    leaders = cluster.leading_brokers()
    if not leaders:
        return None
    broker = rng.choice(leaders)
    fail(cluster.hosts[broker])
    return lambda: cluster.restart(broker)


def _die_in_the_middle(cluster: SimCluster, rng: random.Random) -> End | None:
    """Between two system calls, or within one."""
    broker = _any_up(cluster, rng)
    if broker is None:
        return None
    host = cluster.hosts[broker]
    host.dies_of_power_failure = rng.random() < 0.5
    host.disk.faults.die_at_operation = rng.randint(1, 60)
    return lambda: cluster.restart(broker)


def _stop(cluster: SimCluster, rng: random.Random) -> End | None:
    """In good order, as for an upgrade."""
    broker = _any_up(cluster, rng)
    host = None if broker is None else cluster.hosts[broker]
    if broker is None or host is None or host.program is None or not host.is_running:
        return None
    cluster.trace.add(host.name, "stops in good order")
    assert host.process is not None
    host.process.run_now(host.program.stop)
    host.kill()
    return lambda: cluster.restart(broker)


def _lose_disk(cluster: SimCluster, rng: random.Random) -> End | None:
    broker = rng.choice(cluster.scenario.brokers)
    if not cluster.disk_losses.may_lose(broker):
        return None
    cluster.disk_losses.lose(broker)
    return lambda: cluster.restart(broker)


def _pause(cluster: SimCluster, rng: random.Random) -> End | None:
    broker = rng.choice(cluster.leading_brokers() or list(cluster.scenario.brokers))
    host = cluster.hosts[broker]
    cluster.trace.add(host.name, "is paused")
    host.pause()

    def end() -> None:
        cluster.trace.add(host.name, "goes on")
        host.resume()

    return end


def _jump_wall_clock(cluster: SimCluster, rng: random.Random) -> End | None:
    broker = rng.choice(cluster.scenario.brokers)
    jump_ms = rng.choice((-3_600_000, -5_000, 5_000, 3_600_000))
    cluster.trace.add(cluster.hosts[broker].name, f"its wall clock jumps by {jump_ms} ms")
    cluster.hosts[broker].clock.jump_wall(jump_ms)
    return over


# ---- network ---------------------------------------------------------------------------------


def _cut_one_way(cluster: SimCluster, rng: random.Random) -> End | None:
    source, target = rng.sample(cluster.scenario.brokers, 2)
    return cut(cluster, [(source, target)])


def _cut_from_leader(cluster: SimCluster, rng: random.Random) -> End | None:
    """One follower and its leader do not reach each other; both reach all others."""
    for replica in cluster.leading_replicas(rng):
        leader = replica.self_id
        others = [broker for broker in replica.configuration.members if broker != leader]
        if others:
            follower = rng.choice(others)
            return cut(cluster, [(leader, follower), (follower, leader)])
    return None


def _isolate(cluster: SimCluster, rng: random.Random) -> End | None:
    alone = rng.choice(cluster.leading_brokers() or list(cluster.scenario.brokers))
    others = [broker for broker in cluster.scenario.brokers if broker != alone]
    return cut(cluster, [*product([alone], others), *product(others, [alone])])


def _mute(cluster: SimCluster, rng: random.Random) -> End | None:
    """A broker receives and cannot send, or sends and cannot receive."""
    alone = rng.choice(cluster.scenario.brokers)
    others = [broker for broker in cluster.scenario.brokers if broker != alone]
    if rng.random() < 0.5:
        return cut(cluster, list(product([alone], others)))
    return cut(cluster, list(product(others, [alone])))


def _split(cluster: SimCluster, rng: random.Random) -> End | None:
    brokers = rng.sample(cluster.scenario.brokers, len(cluster.scenario.brokers))
    size = rng.randint(1, len(brokers) - 1)
    one, other = brokers[:size], brokers[size:]
    pairs = [*product(one, other), *product(other, one)]
    end = cut(cluster, pairs)
    if rng.random() < 0.5:
        for source, target in pairs:
            cluster.fabric.reset(source, target)
    return end


def _reset(cluster: SimCluster, rng: random.Random) -> End | None:
    source, target = rng.sample(cluster.scenario.brokers, 2)
    cluster.trace.add("world", f"connections from {source} to {target} are reset")
    cluster.fabric.reset(source, target)
    return over


def _slow_link(cluster: SimCluster, rng: random.Random) -> End | None:
    source, target = rng.sample(cluster.scenario.brokers, 2)
    link = cluster.fabric.link(source, target)
    factor = rng.choice((3, 10, 50))
    cluster.trace.add("world", f"the link from {source} to {target} is {factor} times slower")
    link.slow_factor = factor

    def end() -> None:
        link.slow_factor = 1

    return end


def _lossy_link(cluster: SimCluster, rng: random.Random) -> End | None:
    source, target = rng.sample(cluster.scenario.brokers, 2)
    link = cluster.fabric.link(source, target)
    cluster.trace.add("world", f"the link from {source} to {target} loses a fifth")
    link.loss_ratio = 0.2

    def end() -> None:
        link.loss_ratio = cluster.scenario.loss_ratio

    return end


def _swallow(cluster: SimCluster, rng: random.Random) -> End | None:
    """As when a firewall between two regions forgets its connections."""
    one, other = rng.sample(cluster.scenario.brokers, 2)
    cluster.trace.add(
        "world", f"what is sent between {one} and {other} vanishes until they reconnect"
    )
    cluster.fabric.swallow(one, other)
    return over


def _deliver_late(cluster: SimCluster, rng: random.Random) -> End | None:
    """Mostly to a leader's followers: appends that are sent again, and then come twice."""
    leaders = cluster.leading_brokers()
    source = rng.choice(leaders or list(cluster.scenario.brokers))
    target = rng.choice([one for one in cluster.scenario.brokers if one != source])
    if rng.random() < 0.3:
        source, target = target, source
    late_ms = rng.choice((20, 200, 2_000, 10_000))
    count = cluster.fabric.deliver_late(source, target, late_ms * US_PER_MS)
    cluster.trace.add(
        "world",
        f"{source} loses its connections to {target}; {count} messages come {late_ms} ms later",
    )
    return over


# ---- disks -----------------------------------------------------------------------------------


def _slow_disk(cluster: SimCluster, rng: random.Random) -> End | None:
    broker = rng.choice(cluster.scenario.brokers)
    faults = cluster.hosts[broker].disk.faults
    # A broker opens its logs one after the other, and a consumer group has fifty of them.
    factors = (5,) if cluster.scenario.has_brokers else (10, 100)
    faults.slow_factor = rng.choice(factors)
    cluster.trace.add(cluster.hosts[broker].name, f"its disk is {faults.slow_factor} times slower")

    def end() -> None:
        faults.slow_factor = 1

    return end


def _fail_flush(cluster: SimCluster, rng: random.Random) -> End | None:
    """What a failed flush leaves in the page cache looks sound: in half of the cases the process
    alone is started anew after it, as systemd does, and in the others the machine.

    Then it may be the journal's flush that fails, or one of each broker: they share a storage."""
    broker = rng.choice(cluster.scenario.brokers)
    # From random numbers of its own: histories in which nothing fails to flush stay the same.
    own = random.Random(f"failed flush of {cluster.scenario.seed} at {cluster.scheduler.now_us}")
    keeps_cache = own.random() < 0.5
    is_shared = keeps_cache and own.random() < 0.5
    path_end = JOURNAL if keeps_cache and own.random() < 0.5 else ""
    targets = [cluster.hosts[one] for one in (cluster.hosts if is_shared else (broker,))]
    for host in targets:
        host.disk.faults.fail_flush_count = 1
        host.disk.faults.fail_flush_of = path_end
        host.disk.faults.keeps_cache = keeps_cache
        host.disk.eviction_rng = random.Random(own.getrandbits(64))
        cluster.trace.add(
            host.name, f"its next flush {'of the journal ' * bool(path_end)}will fail"
        )

    def end() -> None:
        for host in targets:
            host.disk.faults.fail_flush_count = 0
            if keeps_cache:
                host.kill()
            else:
                host.fail_power()
            cluster.restart(host.broker)

    return end


def _fill_disk(cluster: SimCluster, rng: random.Random) -> End | None:
    broker = rng.choice(cluster.scenario.brokers)
    disk = cluster.hosts[broker].disk
    room = rng.randint(0, 20_000)
    disk.faults.foreign_bytes = disk.capacity_bytes - disk.used_bytes() - room
    cluster.trace.add(cluster.hosts[broker].name, f"its disk has {room} bytes left")

    def end() -> None:
        disk.faults.foreign_bytes = 0

    return end


def _fill_cache(cluster: SimCluster, rng: random.Random) -> End | None:
    """The cache of old records has a file system of its own, and that is full."""
    broker = rng.choice(cluster.scenario.brokers)
    faults = cluster.hosts[broker].disk.faults
    faults.full_directory = CACHE
    cluster.trace.add(cluster.hosts[broker].name, "its cache of old records has no room")

    def end() -> None:
        faults.full_directory = ""

    return end


# ---- operations ------------------------------------------------------------------------------


def _transfer_leadership(cluster: SimCluster, rng: random.Random) -> End | None:
    for replica in cluster.leading_replicas(rng):
        to = rng.choice(replica.configuration.voters)
        cluster.trace.add(
            f"broker {replica.self_id}", f"is to hand {replica.name} over to broker {to}"
        )
        _ask(cluster, replica.self_id, lambda r=replica, t=to: r.transfer_leadership(t))  # type: ignore[misc]
        return over
    return None


def _change_configuration(cluster: SimCluster, rng: random.Random) -> End | None:
    for replica in cluster.leading_replicas(rng):
        hosts = rng.sample(cluster.plan(replica.group).hosts, len(cluster.scenario.brokers))
        count = rng.randint(1, len(hosts))
        voters, observers = hosts[:count], hosts[count : count + rng.randint(0, 1)]
        known = replica.configuration.all_voters
        unready = [one for one in voters if not (one in known or replica.is_ready_to_vote(one))]
        if replica.log.config.compacted or 2 * len(unready) >= len(voters):
            # As the product does (`broker.groups.moving`): a replica that has yet to rejoin grants
            # no vote, and without its leader it never rejoins; a stale log must not vote either.
            voters = [one for one in voters if one not in unready]
            observers += unready
            if not voters:
                return None
        cluster.trace.add(
            f"broker {replica.self_id}",
            f"is to change {replica.name} to voters {voters}, observers {observers}",
        )
        _ask(
            cluster,
            replica.self_id,
            lambda r=replica, v=voters, o=observers: r.change_configuration(  # type: ignore[misc]
                voters=v, observers=o, min_insync=cluster.plan(r.group).min_insync
            ),
        )
        return over
    return None


# ---- the table -------------------------------------------------------------------------------

FAULTS: dict[str, Begin] = {
    "kill": _kill,
    "kill-leader": _kill_leader,
    "absence": _stay_away,
    "power-failure": _fail_power,
    "leader-power-failure": _fail_power_of_leader,
    "total-power-failure": _fail_power_of_all,
    "region-power-failure": _fail_power_of_region,
    "stop": _stop,
    "lost-disk": _lose_disk,
    "death-in-the-middle": _die_in_the_middle,
    "pause": _pause,
    "wall-clock-jump": _jump_wall_clock,
    "one-way-cut": _cut_one_way,
    "cut-from-leader": _cut_from_leader,
    "isolation": _isolate,
    "mute": _mute,
    "split": _split,
    "reset": _reset,
    "slow-link": _slow_link,
    "lossy-link": _lossy_link,
    "slow-disk": _slow_disk,
    "failed-flush": _fail_flush,
    "full-disk": _fill_disk,
    "leadership-transfer": _transfer_leadership,
    "configuration-change": _change_configuration,
    "kill-all": _kill_all,
    "black-hole": _swallow,
    "late-delivery": _deliver_late,
    "bit-rot": rot,
    "lying-disk": lie,
    "rotten-tail": rot_tail,
    "open-rot": rot_while_open,
    "index-rot": rot_indexes,
    "journal-rot": rot_journal,
    "power-failure-rot": rot_without_power,
    "region-cut": cut_region,
    "cut-between-regions": cut_between_regions,
    "region-drill": drill_region,
    "zone-power-failure": fail_power_of_zone,
    "zone-kill": kill_zone,
    "flapping-link": flap,
    "observer-death": kill_observer,
    "spare-disk-lost": lose_spare_disk,
    "forgotten-fence": forgotten_fence,
    "early-report": early_report,
    "cut-after-shrink": cut_after_shrink,
    "late-fence": late_fence,
    "lasting-loss": lose_for_good,
    "stalled-requests": stall_requests,
    "lost-answers": lose_answers,
    "client-reset": reset_clients,
    **BUCKET_FAULTS,
    "full-cache": _fill_cache,
}


def _any_up(cluster: SimCluster, rng: random.Random) -> BrokerId | None:
    up = [broker for broker, host in cluster.hosts.items() if host.is_up]
    return rng.choice(up) if up else None


def _ask(cluster: SimCluster, broker: BrokerId, command: Callable[[], None]) -> None:
    """Let a broker do something, in its own process; it may refuse."""

    def attempt() -> None:
        try:
            command()
        except RejectedError:
            cluster.trace.add(f"broker {broker}", "refuses")

    process = cluster.hosts[broker].process
    if process is not None:
        process.after(0, attempt)
