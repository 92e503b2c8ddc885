"""What goes wrong with a whole zone or region, with observers, and with a disk that can be spared.

Why:    groups whose voters leave, and whose observers stand in, are made for these faults; the
        outage swarm draws them.
How:    as `faults`, whose table has them. A disk may be lost if every acknowledged record is on
        other disks, whatever voters may be in force (`DiskLosses.may_spare`).
Owns:   nothing.
Source: design sections 6 and 10; decisions 0016, 0018, 0019, 0020 and 0025."""

import random
from collections.abc import Sequence
from functools import partial
from itertools import product

from strandline.model.ids import BrokerId
from strandline.protocol.messages.isolate_broker import IsolateBrokerRequest, IsolateBrokerResponse
from strandline.simulation.faults.fault_targets import End, cut, fail_several, over
from strandline.simulation.world.broker_member import BrokerMember
from strandline.simulation.world.cluster import SimCluster
from strandline.simulation.world.scheduler import US_PER_MS

FLAP_MS = (30, 700)
"""So long a link that flaps is cut, or whole, at a time."""
DRILL_DELAY_MS, DRILL_MS = 100, (1_000, 3_000)
ISOLATE_VERSION = 0


def cut_region(cluster: SimCluster, rng: random.Random) -> End | None:
    """A region and all others do not reach each other; or only one way does not work."""
    regions = sorted(set(cluster.scenario.regions))
    if len(regions) < 2:
        return None
    region = rng.choice(regions)
    inside = [one for one in cluster.scenario.brokers if cluster.scenario.region_of(one) == region]
    outside = [one for one in cluster.scenario.brokers if one not in inside]
    ways = [list(product(inside, outside)), list(product(outside, inside))]
    lost = ways if rng.random() < 0.6 else [rng.choice(ways)]
    cluster.trace.add("world", f"region {region} is cut off, {len(lost)} of 2 ways")
    return cut(cluster, [one for way in lost for one in way])


def cut_between_regions(cluster: SimCluster, rng: random.Random) -> End | None:
    """Two regions do not reach each other; all others reach both."""
    regions = sorted(set(cluster.scenario.regions))
    if len(regions) < 3:
        return None
    one, other = rng.sample(regions, 2)
    brokers = cluster.scenario.brokers
    here = [broker for broker in brokers if cluster.scenario.region_of(broker) == one]
    there = [broker for broker in brokers if cluster.scenario.region_of(broker) == other]
    ways = [list(product(here, there)), list(product(there, here))]
    lost = ways if rng.random() < 0.6 else [rng.choice(ways)]
    cluster.trace.add("world", f"regions {one} and {other} are cut off, {len(lost)} of 2 ways")
    return cut(cluster, [pair for way in lost for pair in way])


def fail_power_of_zone(cluster: SimCluster, rng: random.Random) -> End | None:
    """All brokers of a zone at once."""
    brokers = _zone(cluster, rng)
    return fail_several(cluster, brokers, lambda host: host.fail_power()) if brokers else None


def kill_zone(cluster: SimCluster, rng: random.Random) -> End | None:
    """All processes of a zone at once."""
    brokers = _zone(cluster, rng)
    return fail_several(cluster, brokers, lambda host: host.kill()) if brokers else None


def _zone(cluster: SimCluster, rng: random.Random) -> Sequence[BrokerId]:
    zones = cluster.scenario.zones
    if not zones:
        return ()
    zone = rng.choice(sorted(set(zones)))
    cluster.trace.add("world", f"zone {zone} is struck")
    return [one for one in cluster.scenario.brokers if zones[one - 1] == zone]


def flap(cluster: SimCluster, rng: random.Random) -> End | None:
    """The way between two brokers, or two regions, is cut and whole by turns."""
    one, other = rng.sample(cluster.scenario.brokers, 2)
    here, there = [one], [other]
    if rng.random() < 0.5:
        here, there = _region_of(cluster, one), _region_of(cluster, other)
    ways = [way for way in (*product(here, there), *product(there, here)) if way[0] != way[1]]
    heals: list[End] = []
    is_over = False

    def turn() -> None:
        if heals:
            heals.pop()()
        elif not is_over:
            heals.append(cut(cluster, ways))
        if not is_over:
            cluster.scheduler.after(rng.randint(*FLAP_MS) * US_PER_MS, turn)

    def end() -> None:
        nonlocal is_over
        is_over = True
        if heals:
            heals.pop()()

    turn()
    return end


def _region_of(cluster: SimCluster, broker: BrokerId) -> list[BrokerId]:
    region = cluster.scenario.region_of(broker)
    return [one for one in cluster.scenario.brokers if cluster.scenario.region_of(one) == region]


def kill_observer(cluster: SimCluster, rng: random.Random) -> End | None:
    """One that stands in, where any does; else one that could."""
    votes = {one for fact in cluster.checker.voters.values() for one in fact.possible[-1]}
    observers = {one for plan in cluster.scenario.groups for one in plan.observers}
    up = [one for one in sorted(observers) if cluster.hosts[one].is_up]
    standing_in = [one for one in up if one in votes]
    if not up:
        return None
    broker = rng.choice(standing_in or up)
    host = cluster.hosts[broker]
    if rng.random() < 0.5:
        host.kill()
    else:
        host.fail_power()
    return lambda: cluster.restart(broker)


def lose_spare_disk(cluster: SimCluster, rng: random.Random) -> End | None:
    """The disk of a broker without which every acknowledged record is still there."""
    spare = [one for one in cluster.scenario.brokers if cluster.disk_losses.may_spare(one)]
    if not spare:
        return None
    broker = rng.choice(spare)
    cluster.disk_losses.lose(broker)
    return lambda: cluster.restart(broker)


def drill_region(cluster: SimCluster, rng: random.Random) -> End | None:
    """As `strandline drill region`: its brokers cut themselves off, and end that by themselves."""
    region = rng.choice(sorted(set(cluster.scenario.regions)))
    request = IsolateBrokerRequest(DRILL_DELAY_MS, rng.randint(*DRILL_MS))
    targets = 0
    for broker in cluster.scenario.brokers:
        host = cluster.hosts[broker]
        member, process = host.program, host.process
        if cluster.scenario.region_of(broker) != region or process is None:
            continue
        if isinstance(member, BrokerMember):
            process.after(0, partial(_drill, member, request))
            targets += 1
    if not targets:
        return None
    cluster.trace.add("world", f"a drill of region {region}, which reaches {targets} brokers")
    return over


def _drill(member: BrokerMember, request: IsolateBrokerRequest) -> None:
    """Inside the broker."""

    def on_answer(answer: IsolateBrokerResponse) -> None:
        """It may be in a drill already."""

    def on_closed(reason: str) -> None:
        """A broker that has not joined takes no requests."""

    member.ask(
        request, IsolateBrokerResponse, ISOLATE_VERSION, on_answer=on_answer, on_closed=on_closed
    )
