"""What goes wrong with a whole zone or region, with observers, and with a disk that can be spared.

Why:    groups whose voters leave, and whose observers stand in, are made for these; see
        `outage_swarm`, which draws them.
How:    as `faults`, whose table has them. A disk may go where everything that was acknowledged is
        on others, by all voters that may be in force (`World.may_spare_disk`).
Owns:   nothing.
Source: design sections 6 and 10; decisions 0016, 0018, 0019, 0020 and 0025."""

import random
from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

from strandline.model.ids import BrokerId
from strandline.protocol.messages.isolate_broker import IsolateBrokerRequest, IsolateBrokerResponse
from strandline.simulation.faults.fault_targets import End, cut, over, strike_several
from strandline.simulation.world.broker_member import BrokerMember
from strandline.simulation.world.scheduler import US_PER_MS

if TYPE_CHECKING:
    from strandline.simulation.world.world import World

FLAP_MS = (30, 700)
"""So long a link that flaps is cut, or whole, at a time."""
DRILL_DELAY_MS, DRILL_MS = 100, (1_000, 3_000)
ISOLATE_VERSION = 0


def cut_region(world: "World", rng: random.Random) -> End | None:
    """A region and all others do not reach each other; or only one way does not work."""
    regions = sorted(set(world.scenario.regions))
    if len(regions) < 2:
        return None
    region = rng.choice(regions)
    inside = [one for one in world.scenario.brokers if world.region_of(one) == region]
    outside = [one for one in world.scenario.brokers if one not in inside]
    ways = [list(product(inside, outside)), list(product(outside, inside))]
    lost = ways if rng.random() < 0.6 else [rng.choice(ways)]
    world.trace.add("world", f"region {region} is cut off, {len(lost)} of 2 ways")
    return cut(world, [one for way in lost for one in way])


def cut_between_regions(world: "World", rng: random.Random) -> End | None:
    """Two regions do not reach each other; all others reach both."""
    regions = sorted(set(world.scenario.regions))
    if len(regions) < 3:
        return None
    one, other = rng.sample(regions, 2)
    brokers = world.scenario.brokers
    here = [broker for broker in brokers if world.region_of(broker) == one]
    there = [broker for broker in brokers if world.region_of(broker) == other]
    ways = [list(product(here, there)), list(product(there, here))]
    lost = ways if rng.random() < 0.6 else [rng.choice(ways)]
    world.trace.add("world", f"regions {one} and {other} are cut off, {len(lost)} of 2 ways")
    return cut(world, [pair for way in lost for pair in way])


def fail_power_of_zone(world: "World", rng: random.Random) -> End | None:
    """All brokers of a zone at once."""
    brokers = _zone(world, rng)
    return strike_several(world, brokers, lambda host: host.fail_power()) if brokers else None


def kill_zone(world: "World", rng: random.Random) -> End | None:
    """All processes of a zone at once."""
    brokers = _zone(world, rng)
    return strike_several(world, brokers, lambda host: host.kill()) if brokers else None


def _zone(world: "World", rng: random.Random) -> Sequence[BrokerId]:
    zones = world.scenario.zones
    if not zones:
        return ()
    zone = rng.choice(sorted(set(zones)))
    world.trace.add("world", f"zone {zone} is struck")
    return [one for one in world.scenario.brokers if zones[one - 1] == zone]


def flap(world: "World", rng: random.Random) -> End | None:
    """The way between two brokers, or two regions, is cut and whole by turns."""
    one, other = rng.sample(world.scenario.brokers, 2)
    here, there = [one], [other]
    if rng.random() < 0.5:
        here, there = _region_of(world, one), _region_of(world, other)
    ways = [way for way in (*product(here, there), *product(there, here)) if way[0] != way[1]]
    heals: list[End] = []
    is_over = False

    def turn() -> None:
        if heals:
            heals.pop()()
        elif not is_over:
            heals.append(cut(world, ways))
        if not is_over:
            world.scheduler.after(rng.randint(*FLAP_MS) * US_PER_MS, turn)

    def end() -> None:
        nonlocal is_over
        is_over = True
        if heals:
            heals.pop()()

    turn()
    return end


def _region_of(world: "World", broker: BrokerId) -> list[BrokerId]:
    region = world.region_of(broker)
    return [one for one in world.scenario.brokers if world.region_of(one) == region]


def kill_observer(world: "World", rng: random.Random) -> End | None:
    """One that stands in, where any does; else one that could."""
    votes = {one for fact in world.checker.voters.values() for one in fact.possible[-1]}
    observers = {one for plan in world.scenario.groups for one in plan.observers}
    up = [one for one in sorted(observers) if world.hosts[one].is_up]
    standing_in = [one for one in up if one in votes]
    if not up:
        return None
    broker = rng.choice(standing_in or up)
    host = world.hosts[broker]
    if rng.random() < 0.5:
        host.kill()
    else:
        host.fail_power()
    return lambda: world.restart(broker)


def lose_a_spare_disk(world: "World", rng: random.Random) -> End | None:
    """Of anybody without whom nothing that was acknowledged is gone."""
    spare = [one for one in world.scenario.brokers if world.may_spare_disk(one)]
    if not spare:
        return None
    broker = rng.choice(spare)
    world.lose_disk(broker)
    return lambda: world.restart(broker)


def drill_region(world: "World", rng: random.Random) -> End | None:
    """As `strandline drill region`: its brokers cut themselves off, and end that by themselves."""
    region = rng.choice(sorted(set(world.scenario.regions)))
    request = IsolateBrokerRequest(DRILL_DELAY_MS, rng.randint(*DRILL_MS))
    struck = 0
    for broker in world.scenario.brokers:
        host = world.hosts[broker]
        member, process = host.program, host.process
        if world.region_of(broker) != region or process is None:
            continue
        if isinstance(member, BrokerMember):
            process.after(0, partial(_drill, member, request))
            struck += 1
    if not struck:
        return None
    world.trace.add("world", f"a drill of region {region}, which reaches {struck} brokers")
    return over


def _drill(member: BrokerMember, request: IsolateBrokerRequest) -> None:
    """Inside the broker."""

    def on_answer(answer: IsolateBrokerResponse) -> None:
        """It may be in a drill already."""

    def on_closed(reason: str) -> None:
        """Who has not joined is not asked."""

    member.ask(
        request, IsolateBrokerResponse, ISOLATE_VERSION, on_answer=on_answer, on_closed=on_closed
    )
