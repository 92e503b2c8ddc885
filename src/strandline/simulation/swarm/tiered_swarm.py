"""The family of seeds with tiered storage: old records leave the brokers' disks for buckets.

Why:    a bug in tiering loses records only after local retention has removed them.
How:    `draw_tiered(seed)` takes a usual seed with whole brokers, without compaction and without
        lost or rotten disks, and gives each region a bucket; logs keep a few kilobytes. In most
        seeds the buckets fail, too.
Owns:   nothing.
Source: decisions 0057 and 0058."""

import random
from dataclasses import replace

from strandline.simulation.faults.kinds import BAD_DISKS, BUCKET_KINDS
from strandline.simulation.scenarios.scenario import REGIONS, Scenario

SEGMENT_BYTES = (1_024, 4_096, 16_384)
LOCAL_SEGMENTS = (0, 1, 3)
"""How many segments stay on the disk."""
ACTIVE_MS = 6_000
FAULTY_SHARE = 0.8
DELETE_SHARE = 0.3
KINDS_MAX = 4
_LEFT_OUT = {*BAD_DISKS, "lost-disk", "full-disk", "failed-flush", "wall-clock-jump"}
"""Disks that lose what they had ask how many voters are left; records that are only in a bucket
have nothing to do with it."""


def draw_tiered(seed: int) -> Scenario:
    """The scenario of a seed."""
    drawn = Scenario.draw_groups(seed)
    rng = random.Random(f"tiered {seed}")
    segment_bytes = rng.choice(SEGMENT_BYTES)
    weights = {
        kind: weight for kind, weight in drawn.fault_weights.items() if kind not in _LEFT_OUT
    }
    if rng.random() < FAULTY_SHARE:
        kinds = rng.sample(BUCKET_KINDS, rng.randint(1, KINDS_MAX))
        weights |= {kind: rng.choice((1, 3)) for kind in kinds}
    plain = replace(
        drawn,
        key_count=0,
        fault_weights=weights,
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
    is_deleted = rng.random() < DELETE_SHARE
    return replace(
        plain,
        active_ms=ACTIVE_MS,
        group_consumer_count=0,
        bucket_regions=tuple(rng.sample(REGIONS, rng.choice((1, 2, 2)))),
        delete_interval_ms=rng.choice((300, 1_000)) if is_deleted else 0,
    )
