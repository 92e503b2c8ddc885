"""Faults of object stores, for runs with tiered storage.

Source: reference 2.6; `buckets.bucket` for what each switch does."""

import random
from collections.abc import Callable
from dataclasses import fields

from strandline.simulation.buckets.bucket import BucketFaults
from strandline.simulation.faults.fault_targets import End, over
from strandline.simulation.world.cluster import SimCluster
from strandline.simulation.world.scheduler import US_PER_MS
from strandline.tiered.segments.names import SUFFIX

ALL_SHARE = 0.3

Begin = Callable[[SimCluster, random.Random], End | None]


def _switch(**values: float) -> Begin:
    """A fault of one bucket, or of all, that turns these switches."""

    def begin(cluster: SimCluster, rng: random.Random) -> End | None:
        names = list(cluster.buckets.buckets)
        if not names:
            return None
        struck = names if rng.random() < 0.3 else [rng.choice(names)]
        said = ", ".join(f"{name} = {value}" for name, value in values.items())
        cluster.trace.add("world", f"buckets {', '.join(struck)}: {said}")
        for name in struck:
            for switch, value in values.items():
                setattr(cluster.buckets.buckets[name].faults, switch, value)

        def end() -> None:
            off = BucketFaults()
            for name in struck:
                for switch in values:
                    setattr(cluster.buckets.buckets[name].faults, switch, getattr(off, switch))

        return end

    assert {*values} <= {one.name for one in fields(BucketFaults)}
    return begin


def _lose_objects(cluster: SimCluster, rng: random.Random) -> End | None:
    """The store loses segments of the first bucket, or all; the other one has them, or the logs."""
    names = list(cluster.buckets.buckets)
    if len(names) < 2:
        return None
    bucket = cluster.buckets.buckets[names[0]]
    held = [one for one in bucket.names() if one.endswith(SUFFIX)]
    if not held:
        return None
    lost = held if rng.random() < ALL_SHARE else rng.sample(held, rng.randint(1, len(held)))
    cluster.trace.add("world", f"bucket {names[0]} loses {len(lost)} of {len(held)} segments")
    for name in lost:
        bucket.lose(name)
    return over


BUCKET_FAULTS: dict[str, Begin] = {
    "slow-bucket": _switch(slow_factor=30),
    "bucket-gone": _switch(is_gone=True),
    "throttled-bucket": _switch(throttled_share=0.7),
    "unclear-bucket": _switch(applied_error_share=0.5, taken_share=0.5),
    "silent-bucket": _switch(lost_before_share=0.3, lost_after_share=0.3),
    "late-bucket": _switch(late_share=0.5, late_us=3_000 * US_PER_MS),
    "stale-bucket": _switch(list_lag_us=2_000 * US_PER_MS),
    "wrong-bucket": _switch(wrong_bytes_share=0.3, half_body_share=0.2),
    "hiding-bucket": _switch(missing_share=0.5),
    "lost-objects": _lose_objects,
}
"""{kind: begins it}"""
