"""The family of seeds with tiered storage: old records leave the brokers' disks for buckets.

Why:    a bug in tiering loses records only after local retention has removed them.
How:    `draw_tiered(seed)` takes a usual seed with whole brokers, without compaction, and gives one
        or two regions a bucket; logs keep a few kilobytes. Most seeds are small: one group on three
        brokers, and load for a second or three. In most seeds the buckets fail, too. Up to two
        subjects more are of `tiered_mixes`; other faults of disks and clocks are left out.
Owns:   nothing.
Source: decisions 0057 and 0058."""

import random
from dataclasses import replace

from strandline.simulation.faults.kinds import BAD_DISKS, BUCKET_KINDS
from strandline.simulation.scenarios.scenario import KIB, REGIONS, GroupPlan, Scenario
from strandline.simulation.swarm.tiered_mixes import MIXES, draw_mixes

LARGE_SHARE = 0.05
"""In so many seeds there are up to three groups on up to five brokers, for longer."""
LARGE_ACTIVE_MS = 6_000
LARGE_SEGMENT_COUNTS = (10, 20, 40)
SEGMENT_COUNTS = (4, 8, 12)
"""About so many segments are closed while there is load."""
SEGMENT_BYTES_MIN = 1 * KIB
BATCH_BYTES = 100
"""Beside the values."""
ACTIVE_MS = (1_000, 2_000, 3_000)
FAULT_INTERVAL_MS = (100, 250)
PRODUCER_INTERVAL_MS = (10, 20, 40)
BROKER_COUNT = 3
PRODUCERS_MAX = 2
LOCAL_SEGMENTS = (0, 0, 1, 3)
"""How many segments stay on the disk."""
FAULTY_SHARE = 0.8
COPIED_SHARE = 0.5
"""In so many seeds another cluster serves a read-only copy."""
KINDS_MAX = 4
_LEFT_OUT = {*BAD_DISKS, "lost-disk", "full-disk", "failed-flush", "wall-clock-jump"}
"""`tiered_mixes` draws them, one or two a seed."""


def draw_tiered(seed: int) -> Scenario:
    """The scenario of a seed."""
    rng = random.Random(f"tiered {seed}")
    drawn = Scenario.draw_groups(seed)
    is_large = rng.random() < LARGE_SHARE
    if not is_large:
        drawn = _reduced(drawn, rng)
    active_ms = LARGE_ACTIVE_MS if is_large else rng.choice(ACTIVE_MS)
    segment_count = rng.choice(LARGE_SEGMENT_COUNTS if is_large else SEGMENT_COUNTS)
    segment_bytes = max(SEGMENT_BYTES_MIN, _written_bytes(drawn, active_ms) // segment_count)
    plain = replace(
        drawn,
        key_count=0,
        fault_weights=_draw_weights(drawn, rng),
        log=replace(
            drawn.log,
            compacted=False,
            delete=True,
            write_caching=False,
            segment_bytes=segment_bytes,
            retention_bytes=-1,
            remote_storage=True,
            local_retention_bytes=rng.choice(LOCAL_SEGMENTS) * segment_bytes,
        ),
    ).whole()
    tiered = replace(
        plain,
        active_ms=active_ms,
        fault_interval_ms=drawn.fault_interval_ms,
        group_consumer_count=0,
        is_copied=rng.random() < COPIED_SHARE,
        bucket_regions=tuple(rng.sample(REGIONS, rng.choice((1, 2, 2)))),
    )
    for name in draw_mixes(rng):
        tiered = MIXES[name].change(tiered, random.Random(f"{name} of {seed}"))
    return tiered


def _draw_weights(drawn: Scenario, rng: random.Random) -> dict[str, int]:
    weights = {
        kind: weight for kind, weight in drawn.fault_weights.items() if kind not in _LEFT_OUT
    }
    if rng.random() < FAULTY_SHARE:
        kinds = rng.sample(BUCKET_KINDS, rng.randint(1, KINDS_MAX))
        weights |= {kind: rng.choice((1, 3)) for kind in kinds}
    return weights


def _written_bytes(drawn: Scenario, active_ms: int) -> int:
    """About so much the producers write."""
    return sum(
        active_ms // one.interval_ms * (one.value_bytes_max // 2 + BATCH_BYTES)
        for one in drawn.producers
    )


def _reduced(drawn: Scenario, rng: random.Random) -> Scenario:
    """One group on three brokers, with a producer or two."""
    brokers = drawn.brokers[:BROKER_COUNT]
    group = drawn.groups[0].group
    producers = [one for one in drawn.producers if one.group == group]
    return replace(
        drawn,
        regions=drawn.regions[:BROKER_COUNT],
        drift_ppm=drawn.drift_ppm[:BROKER_COUNT],
        groups=(GroupPlan(group, brokers, (), brokers, rng.choice((1, 2, 2, 3))),),
        producers=tuple(
            replace(one, interval_ms=rng.choice(PRODUCER_INTERVAL_MS))
            for one in producers[:PRODUCERS_MAX]
        ),
        consumer_count=rng.randint(1, 2),
        fault_interval_ms=rng.choice(FAULT_INTERVAL_MS),
    )
