"""The third family of seeds: a few hundred milliseconds of one group, and faults that overlap.

Why:    to find one interleaving of elections, appends, flushes and crashes, an hour of simulation
        is better spent on many beginnings than on a few long histories.
How:    `draw_brief(seed)` takes the networks, disks, clocks, limits and logs of a usual seed, for
        the first of its groups, without brokers above it, with
            faults     of a few of the drawn kinds, which begin every few dozen milliseconds; in
                       most seeds once there can be a leader
            cached writes, a distrusted disk, rot and the scrub
                       as the usual seeds have them (`variations`)
            time-outs  short ones, so that there are elections within the load
        The verdict and the promises are those of every history.
Owns:   nothing.
Source: design section 10."""

import random
from dataclasses import replace

from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.swarm.variations import (
    with_caching,
    with_distrust,
    with_marks,
    with_rot,
    with_scrub,
)

LEAD_TRAVELS = 4
"""So many times as long as the longest way takes what elects a leader, once somebody stands."""
LOADED_MS = (100, 200, 400)
FAULT_INTERVAL_MS = (20, 60, 150)
DURATION_MS = (5, 300)
KIND_COUNTS = (1, 2, 3, 4, 6)
EARLY_SHARE = 0.2
"""In so many seeds, faults begin at once."""
HEARTBEAT_MS = 50
TIMEOUT_HEARTBEATS = (3, 4)
START_SPREAD_MS = 50
"""Nothing happens before all are there."""
RESTART_DELAY_MS = (1, 200)
PRODUCER_INTERVAL_MS = (5, 10, 20)


def draw_brief(seed: int) -> Scenario:
    """The scenario of a seed."""
    drawn = Scenario.draw_groups(seed)
    group = drawn.groups[0].group
    rng = random.Random(f"brief {seed}")
    timeout_ms = HEARTBEAT_MS * rng.choice(TIMEOUT_HEARTBEATS)
    lead_ms = START_SPREAD_MS + timeout_ms + LEAD_TRAVELS * max(drawn.one_way_us.values()) // 1_000
    shortened = replace(
        drawn,
        groups=drawn.groups[:1],
        producers=tuple(
            replace(one, interval_ms=rng.choice(PRODUCER_INTERVAL_MS))
            for one in drawn.producers
            if one.group == group
        ),
        consumer_count=1,
        settings=replace(
            drawn.settings,
            heartbeat_interval_ms=HEARTBEAT_MS,
            election_timeout_ms=timeout_ms,
            election_spread_ms=HEARTBEAT_MS * 2,
        ),
        active_ms=lead_ms + rng.choice(LOADED_MS),
        start_spread_ms=START_SPREAD_MS,
        restart_delay_ms=RESTART_DELAY_MS,
        fault_interval_ms=rng.choice(FAULT_INTERVAL_MS),
    )
    varied = with_scrub(with_rot(with_distrust(with_caching(with_marks(shortened)))))
    kinds = list(varied.fault_weights)
    drawn_kinds = rng.sample(kinds, min(rng.choice(KIND_COUNTS), len(kinds)))
    faults = varied.draw_faults(
        rng,
        {kind: varied.fault_weights[kind] for kind in drawn_kinds},
        lambda _: DURATION_MS,
        from_ms=0 if rng.random() < EARLY_SHARE else lead_ms,
    )
    return replace(varied, faults=faults)
