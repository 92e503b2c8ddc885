"""The fourth family of seeds: snapshots of the controller's log, every few records.

Why:    brokers start from snapshots, cut their logs behind them, and send them to each other: each
        step may be the one at which the power fails, or a disk is lost.
How:    `draw_snapshots(seed)` takes a usual seed with whole brokers, and
            snapshots  after a few hundred bytes, while the controller decides something all the
                       time
            faults     more of those that end processes, keep brokers away, or lose disks
            moves      an admin moves replicas, where no disk is lost (`variations`)
Owns:   nothing.
Source: decision 0062; design section 10."""

import random
from dataclasses import replace

from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.swarm.variations import OTHER_LOSSES, with_deletions, with_marks

SNAPSHOT_BYTES = (200, 600, 2_000)
ENDINGS = ("kill", "kill-all", "absence", "power-failure", "total-power-failure", "stop")
LOST_DISK_SHARE = 0.5
MOVING_SHARE = 0.3
MOVE_INTERVAL_MS = (300, 1_000)


def draw_snapshots(seed: int) -> Scenario:
    """The scenario of a seed."""
    rng = random.Random(f"snapshots {seed}")
    groups = Scenario.draw_groups(seed)
    usual = with_deletions(with_marks(groups.whole()))
    weights = dict(usual.fault_weights)
    weight = 1 + sum(weights.values()) // 4
    for kind in rng.sample(ENDINGS, rng.randint(1, len(ENDINGS))):
        weights[kind] = weights.get(kind, 0) + weight
    for kind in OTHER_LOSSES:
        weights.pop(kind, None)
    if rng.random() < LOST_DISK_SHARE:
        weights["lost-disk"] = weight
    drawn = replace(
        usual,
        group_consumer_count=0,
        active_ms=groups.active_ms,
        fault_interval_ms=groups.fault_interval_ms,
        fault_weights=weights,
        snapshot_bytes=rng.choice(SNAPSHOT_BYTES),
    )
    if "lost-disk" not in weights and rng.random() < MOVING_SHARE:
        drawn = replace(drawn, move_interval_ms=rng.choice(MOVE_INTERVAL_MS))
    return drawn
