"""Histories that strike relays: `python -m tests.simulation.relay_swarm FIRST COUNT`.

Why:    ordinary seeds seldom have a region with three replicas, and their faults seldom hit the one
        through whom the others are served.
How:    `draw_relays(seed)` is a cluster of two or three regions, five to seven brokers, groups with
        several replicas in a region, and faults of which some look for a leader that sends through
        a relay just then: they strike the relay, or the ways to it and from it.
Source: decision 0034."""

import gc
import random
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING
from unittest.mock import patch

from strandline.base.errors import RejectedError
from strandline.model.cluster import Labels
from strandline.model.ids import NO_BROKER, BrokerId, GroupId
from strandline.simulation.faults.fault_targets import End, cut, over
from strandline.simulation.faults.faults import FAULTS
from strandline.simulation.faults.kinds import FAULT_KINDS, FaultKind
from strandline.simulation.scenarios.scenario import GroupPlan, ProducerPlan, Scenario
from strandline.simulation.swarm.swarm import Outcome, run_scenario
from strandline.simulation.world.cluster import SimCluster

if TYPE_CHECKING:
    from strandline.replication.replica.replica import Replica

LAYOUTS = (
    ("east", "east", "west", "west", "west"),
    ("east", "west", "west", "west", "west"),
    ("east", "east", "west", "west", "south"),
    ("east", "east", "west", "west", "south", "south"),
    ("east", "west", "west", "west", "south", "south", "south"),
    ("east", "east", "east", "west", "west", "west", "west"),
)


@dataclass(frozen=True, slots=True)
class Target:
    """A leader, its relay, and one who is served through it."""

    leader: "Replica"
    relay: BrokerId
    behind: BrokerId


Begin = Callable[[SimCluster, random.Random, Target], End | None]


def find_relay(cluster: SimCluster, rng: random.Random) -> Target | None:
    """One that something is under way by."""
    for replica in cluster.leading_replicas(rng):
        assert replica.leadership is not None
        streams = replica.leadership.streams
        behind = [one for one, stream in streams.items() if stream.relay != NO_BROKER]
        if behind:
            one = rng.choice(behind)
            return Target(replica, streams[one].relay, one)
    return None


def _begin(kind: str, cluster: SimCluster, rng: random.Random) -> End | None:
    target = find_relay(cluster, rng)
    if target is None:
        return None
    leader = target.leader.self_id
    text = f"{kind}: relay {target.relay} of {leader} for {target.behind}"
    cluster.trace.add("world", text)
    return BEGINNINGS[kind](cluster, rng, target)


def _kill(cluster: SimCluster, rng: random.Random, target: Target) -> End | None:
    cluster.hosts[target.relay].kill()
    return lambda: cluster.restart(target.relay)


def _power(cluster: SimCluster, rng: random.Random, target: Target) -> End | None:
    cluster.hosts[target.relay].fail_power()
    return lambda: cluster.restart(target.relay)


def _pause(cluster: SimCluster, rng: random.Random, target: Target) -> End | None:
    host = cluster.hosts[target.relay]
    host.pause()
    return host.resume


def _mute(cluster: SimCluster, rng: random.Random, target: Target) -> End | None:
    others = [one for one in cluster.scenario.brokers if one != target.relay]
    if rng.random() < 0.5:
        return cut(cluster, [(target.relay, one) for one in others])
    return cut(cluster, [(one, target.relay) for one in others])


def _cut(cluster: SimCluster, rng: random.Random, target: Target) -> End | None:
    ways = [
        (target.relay, target.behind),
        (target.behind, target.relay),
        (target.leader.self_id, target.relay),
        (target.relay, target.leader.self_id),
    ]
    return cut(cluster, rng.sample(ways, rng.randint(1, 2)))


def _cut_behind(cluster: SimCluster, rng: random.Random, target: Target) -> End | None:
    """Who is behind cannot be reached by its leader any more."""
    return cut(
        cluster,
        [(target.leader.self_id, target.behind), (target.behind, target.leader.self_id)][
            : rng.randint(1, 2)
        ],
    )


def _slow(cluster: SimCluster, rng: random.Random, target: Target) -> End | None:
    leader = target.leader.self_id
    ways = [(target.relay, target.behind), (leader, target.relay), (target.relay, leader)]
    link = cluster.fabric.link(*rng.choice(ways))
    link.slow_factor = rng.choice((3, 10, 50))

    def end() -> None:
        link.slow_factor = 1

    return end


def _slow_disk(cluster: SimCluster, rng: random.Random, target: Target) -> End | None:
    faults = cluster.hosts[rng.choice((target.relay, target.behind))].disk.faults
    faults.slow_factor = rng.choice((10, 100))

    def end() -> None:
        faults.slow_factor = 1

    return end


def _reset(cluster: SimCluster, rng: random.Random, target: Target) -> End | None:
    ways = [
        (target.relay, target.behind),
        (target.leader.self_id, target.relay),
        (target.leader.self_id, target.behind),
    ]
    cluster.fabric.reset(*rng.choice(ways))
    return over


def _swallow(cluster: SimCluster, rng: random.Random, target: Target) -> End | None:
    ways = [(target.relay, target.behind), (target.leader.self_id, target.relay)]
    cluster.fabric.swallow(*rng.choice(ways))
    return over


def _late(cluster: SimCluster, rng: random.Random, target: Target) -> End | None:
    ways = [
        (target.relay, target.behind),
        (target.leader.self_id, target.relay),
        (target.leader.self_id, target.behind),
    ]
    cluster.fabric.deliver_late(*rng.choice(ways), rng.choice((20, 200, 2_000)) * 1_000)
    return over


def _full(cluster: SimCluster, rng: random.Random, target: Target) -> End | None:
    disk = cluster.hosts[target.relay].disk
    disk.faults.foreign_bytes = disk.capacity_bytes - disk.used_bytes() - rng.randint(0, 20_000)

    def end() -> None:
        disk.faults.foreign_bytes = 0

    return end


def _flush(cluster: SimCluster, rng: random.Random, target: Target) -> End | None:
    host = cluster.hosts[target.relay]
    host.disk.faults.fail_flush_count = 1
    host.disk.faults.fail_flush_of = ""
    host.disk.faults.keeps_cache = False

    def end() -> None:
        host.disk.faults.fail_flush_count = 0
        host.fail_power()
        cluster.restart(host.broker)

    return end


def _ask(cluster: SimCluster, replica: "Replica", command: Callable[[], None]) -> End | None:
    def attempt() -> None:
        with suppress(RejectedError):
            command()

    process = cluster.hosts[replica.self_id].process
    if process is not None:
        process.after(0, attempt)
    return over


def _transfer(cluster: SimCluster, rng: random.Random, target: Target) -> End | None:
    to = rng.choice((target.relay, target.behind))
    return _ask(cluster, target.leader, lambda: target.leader.transfer_leadership(to))


def _members(cluster: SimCluster, rng: random.Random, target: Target) -> End | None:
    """The relay leaves, or changes its role."""
    plan = cluster.plan(target.leader.group)
    present = target.leader.configuration
    voters = [one for one in present.voters if one != target.relay] or list(present.voters)
    observers = [one for one in present.observers if one != target.relay]
    if rng.random() < 0.5:
        (observers if target.relay in present.voters else voters).append(target.relay)
    return _ask(
        cluster,
        target.leader,
        lambda: target.leader.change_configuration(
            voters=tuple(voters), observers=tuple(observers), min_insync=plan.min_insync
        ),
    )


def _labels(cluster: SimCluster, rng: random.Random, target: Target) -> End | None:
    """Everybody is told of other regions, not at the same time; and of the right ones later."""
    regions = list(cluster.scenario.regions)
    rng.shuffle(regions)

    def place(to: list[str]) -> None:
        for host in cluster.hosts.values():
            if host.program is not None and rng.random() < 0.8:
                host.program.replication.nearness.place(
                    {one: Labels(region=to[one - 1]) for one in cluster.scenario.brokers}
                )

    place(regions)
    return lambda: place(list(cluster.scenario.regions))


def _lose(cluster: SimCluster, rng: random.Random, target: Target) -> End | None:
    broker = rng.choice((target.relay, target.behind))
    if not cluster.disk_losses.may_lose(broker):
        return None
    cluster.disk_losses.lose(broker)
    return lambda: cluster.restart(broker)


BEGINNINGS: dict[str, Begin] = {
    "relay-kill": _kill,
    "relay-power": _power,
    "relay-pause": _pause,
    "relay-mute": _mute,
    "relay-cut": _cut,
    "relay-cut-behind": _cut_behind,
    "relay-slow": _slow,
    "relay-slow-disk": _slow_disk,
    "relay-reset": _reset,
    "relay-swallow": _swallow,
    "relay-late": _late,
    "relay-full": _full,
    "relay-flush": _flush,
    "relay-transfer": _transfer,
    "relay-members": _members,
    "relay-labels": _labels,
    "relay-lost-disk": _lose,
}
LOSING = ("relay-power", "relay-flush", "relay-lost-disk")
OTHERS = (
    "kill-leader",
    "leader-power-failure",
    "pause",
    "one-way-cut",
    "mute",
    "reset",
    "slow-link",
    "leadership-transfer",
    "late-delivery",
    "region-power-failure",
    "kill",
)

RELAY_FAULTS = {kind: partial(_begin, kind) for kind in BEGINNINGS}
RELAY_KINDS = {kind: FaultKind(loses_page_cache=kind in LOSING) for kind in BEGINNINGS}


def run_relays(seed: int) -> Outcome:
    """The history of a seed. Other seeds draw from the table of faults: it stays as it is."""
    scenario = draw_relays(seed)
    with patch.dict(FAULTS, RELAY_FAULTS), patch.dict(FAULT_KINDS, RELAY_KINDS):
        return run_scenario(scenario)


def draw_relays(seed: int) -> Scenario:
    """The scenario of a seed."""
    rng = random.Random(f"relays {seed}")
    base = Scenario.draw(seed).of_groups()
    regions = rng.choice(LAYOUTS)
    ids = [BrokerId(number + 1) for number in range(len(regions))]
    groups = []
    for number in range(rng.randint(1, 2)):
        hosts = rng.sample(ids, len(ids))
        count = rng.choice([one for one in (3, 5, 7, len(ids)) if one <= len(ids)])
        rest = hosts[count:]
        observers = tuple(rest[: rng.randint(0, len(rest))])
        insync = rng.choice((1, 2, 2, (count + 1) // 2 + 1, count))
        voters = tuple(hosts[:count])
        groups.append(GroupPlan(GroupId(number + 1), voters, observers, tuple(hosts), insync))
    producers = tuple(
        ProducerPlan(
            f"p{plan.group}.{number}",
            plan.group,
            rng.choice((-1, -1, -1, 1, 0)),
            False,
            rng.choice((5, 15, 40)),
            rng.choice((20, 300, 2_000, 4_000)),
        )
        for plan in groups
        for number in range(1)
    )
    far_us = rng.choice((2_000, 15_000, 40_000))
    near_us = rng.choice((100, 500, 3_000))
    names = ("east", "west", "south")
    settings = replace(
        base.settings,
        inflight_bytes_max=rng.choice((8 * 1024, 64 * 1024, 16 * 1024 * 1024)),
        inflight_count_max=rng.choice((8, 256)),
        election_timeout_ms=max(base.settings.election_timeout_ms, 400),
    )
    if rng.random() < 0.3:
        settings = replace(settings, queue_bytes_max=rng.choice((16 * 1024, 128 * 1024)))
    kinds = {kind: 2 for kind in BEGINNINGS if rng.random() < rng.choice((0.15, 0.4))} | {
        kind: 1 for kind in OTHERS if rng.random() < 0.15
    }
    if "relay-lost-disk" in kinds:
        kinds.pop("relay-members", None)
    return replace(
        base,
        regions=regions,
        loss_ratio=min(base.loss_ratio, 0.001),
        drift_ppm=tuple(rng.choice((0, rng.randint(-5_000, 5_000))) for _ in regions),
        groups=tuple(groups),
        producers=producers,
        one_way_us={(a, b): near_us if a == b else far_us for a in names for b in names},
        bytes_per_ms=rng.choice((2_000, 10_000, 100_000)),
        settings=settings,
        fault_weights=kinds,
        fault_interval_ms=rng.choice((100, 250, 600)),
        active_ms=rng.choice((1_500, 2_500)),
    )


def main() -> None:
    """Run seeds one after the other; say which break a promise."""
    first, count = int(sys.argv[1]), int(sys.argv[2])
    begun = time.monotonic()
    gc.disable()
    faults: dict[str, int] = {}
    bad = 0
    acked = 0
    for seed in range(first, first + count):
        outcome = run_relays(seed)
        acked += outcome.tally.acknowledged_count
        for kind, number in outcome.tally.fault_counts.items():
            faults[kind] = faults.get(kind, 0) + number
        if outcome.violation is not None:
            bad += 1
            sys.stdout.write(f"seed {seed}: {outcome.violation}\n")
            sys.stdout.flush()
        if seed % 10 == 0:
            gc.collect()
        if (seed - first + 1) % 50 == 0:
            sys.stdout.write(f"{seed - first + 1} histories, {time.monotonic() - begun:.0f} s\n")
            sys.stdout.flush()
    sys.stdout.write(f"{count} histories, {bad} bad, {acked} acknowledged, {faults}\n")


if __name__ == "__main__":
    main()
