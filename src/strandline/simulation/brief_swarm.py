"""The third family of seeds: a few hundred milliseconds of one group, struck all the time.

Why:    an hour of simulation is better spent on many beginnings than on a few long histories, where
        what is looked for is one interleaving of elections, appends, flushes and crashes. Of these
        there are two thousand a minute on two cores.
How:    `draw_brief(seed)` is what `Scenario.draw(seed)` draws of networks, disks, clocks, limits
        and logs, for one group without brokers around it, with
            faults     of a few of the drawn kinds, which begin every few dozen milliseconds and
                       mostly overlap; in most seeds once there can be a leader
            cached writes, a distrusted disk, rot and the scrub
                       as the ordinary seeds have them (`variations`)
            time-outs  short ones, so that there are elections within the load
        What is awaited afterwards, and what is promised, is as in every history.
Owns:   nothing.
Source: design section 10."""

import random
from dataclasses import replace

from strandline.model.ids import BrokerId, GroupId
from strandline.simulation.faults import FAULTS
from strandline.simulation.scenario import GroupPlan, PlannedFault, ProducerPlan, Scenario
from strandline.simulation.variations import with_caching, with_distrust, with_rot, with_scrub

LEAD_MS = 450
"""Until brokers have started and a leader has been elected, mostly."""
LOADED_MS = (100, 200, 400)
FAULT_INTERVAL_MS = (20, 60, 150)
DURATION_MS = (5, 300)
KIND_COUNTS = (1, 2, 3, 4, 6)
EARLY_SHARE = 0.2
"""In so many seeds, faults begin at once."""
BROKER_COUNTS = (3,) * 5 + (4, 5)
HEARTBEAT_MS = 50
TIMEOUT_HEARTBEATS = (3, 4)
RESTART_DELAY_MS = (1, 200)
INTERVAL_MS = (5, 10, 20)


def draw_brief(seed: int) -> Scenario:
    """The scenario of a seed."""
    drawn = Scenario.draw(seed).of_groups()
    rng = random.Random(f"brief {seed}")
    brokers = [BrokerId(one + 1) for one in range(rng.choice(BROKER_COUNTS))]
    group = _draw_group(rng, brokers)
    shortened = replace(
        drawn,
        regions=tuple(drawn.regions[(one - 1) % len(drawn.regions)] for one in brokers),
        drift_ppm=tuple(drawn.drift_ppm[(one - 1) % len(drawn.drift_ppm)] for one in brokers),
        groups=(group,),
        producers=_draw_producers(rng, group),
        consumer_count=1,
        settings=replace(
            drawn.settings,
            heartbeat_interval_ms=HEARTBEAT_MS,
            election_timeout_ms=HEARTBEAT_MS * rng.choice(TIMEOUT_HEARTBEATS),
            election_spread_ms=HEARTBEAT_MS * 2,
        ),
        active_ms=LEAD_MS + rng.choice(LOADED_MS),
        restart_delay_ms=RESTART_DELAY_MS,
        fault_interval_ms=rng.choice(FAULT_INTERVAL_MS),
    )
    varied = with_scrub(with_rot(with_distrust(with_caching(shortened))))
    return replace(varied, faults=_plan_faults(rng, varied))


def _draw_group(rng: random.Random, brokers: list[BrokerId]) -> GroupPlan:
    hosts = rng.sample(brokers, len(brokers))
    voter_count = rng.choice((3, len(brokers) - (1 - len(brokers) % 2)))
    voters, rest = tuple(hosts[:voter_count]), hosts[voter_count:]
    observers = tuple(rest[: rng.randint(0, min(1, len(rest)))])
    min_insync = rng.choice((1, 2, 2, voter_count))
    return GroupPlan(GroupId(1), voters, observers, tuple(hosts), min_insync)


def _draw_producers(rng: random.Random, group: GroupPlan) -> tuple[ProducerPlan, ...]:
    all_acks = rng.choice(((-1,), (-1, -1), (-1, 1), (-1, 0)))
    return tuple(
        ProducerPlan(
            name=f"p{group.group}.{number}",
            group=group.group,
            acks=acks,
            is_idempotent=acks == -1 and rng.random() < 0.7,
            interval_ms=rng.choice(INTERVAL_MS),
            value_bytes_max=rng.choice((20, 300, 2_000)),
        )
        for number, acks in enumerate(all_acks)
    )


def _plan_faults(rng: random.Random, scenario: Scenario) -> tuple[PlannedFault, ...]:
    """Those that the weights stand for, sooner and shorter."""
    drawn = list(scenario.fault_weights)
    kinds = rng.sample(drawn, min(rng.choice(KIND_COUNTS), len(drawn)))
    weights = [scenario.fault_weights[kind] for kind in kinds]
    planned: list[PlannedFault] = []
    at_ms = 0 if rng.random() < EARLY_SHARE else LEAD_MS
    while kinds:
        at_ms += rng.randint(1, 2 * scenario.fault_interval_ms)
        if at_ms >= scenario.active_ms:
            break
        kind = rng.choices(kinds, weights=weights)[0]
        least_ms, most_ms = FAULTS[kind].duration_ms
        duration_ms = rng.randint(min(least_ms, DURATION_MS[0]), min(most_ms, DURATION_MS[1]))
        planned.append(PlannedFault(at_ms, kind, duration_ms, rng.getrandbits(32)))
    return tuple(planned)
