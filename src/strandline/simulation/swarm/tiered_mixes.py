"""What a tiered seed has beside failing buckets: one or two subjects, each with random numbers.

Why:    a promise stays strong only if few things excuse a loss. So a seed draws one subject or two,
        and the table says which do not go together.
How:    each mix changes the scenario:
            lost disks    brokers lose their disks, one at a time
            rot           closed segments, indexes or the journal of one disk go bad
            full disks, failed flushes, clocks
                          the fault of that name, often
            moves         an admin moves replicas while objects are uploaded
            deletions     an admin deletes the oldest records
            total retention
                          by bytes or by time, of a few segments
            lost objects  the store of one of two buckets loses segments, or all
            full caches   the cache of old records has no room
Owns:   nothing.
Source: decision 0058; design section 10."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from strandline.simulation.faults.kinds import FAULT_KINDS
from strandline.simulation.scenarios.scenario import KIB, Scenario

Mix = Callable[[Scenario, random.Random], Scenario]
COUNTS = (0, 1, 1, 1, 2, 2)
ROTS = ("bit-rot", "open-rot", "index-rot", "journal-rot", "power-failure-rot")
MOVE_INTERVAL_MS = (300, 1_000)
DELETE_INTERVAL_MS = (200, 600)
RETAINED_SEGMENTS = (1, 3, 6)
RETENTION_MS = (500, 2_000)
SCRUB_BYTES_PER_S = (256 * KIB, 4 * 1024 * KIB)


@dataclass(frozen=True, slots=True)
class MixRow:
    """`group`: of two mixes with the same group a seed has one."""

    change: Mix
    group: str = ""


def _often(kind: str) -> Mix:
    """A fault that takes about a third of all."""

    def change(scenario: Scenario, rng: random.Random) -> Scenario:
        weight = 1 + sum(scenario.fault_weights.values()) // 2
        return replace(scenario, fault_weights=scenario.fault_weights | {kind: weight})

    return change


def _lose_disks(scenario: Scenario, rng: random.Random) -> Scenario:
    return _often("lost-disk")(_with_majority(scenario), rng)


def _rot(scenario: Scenario, rng: random.Random) -> Scenario:
    """Of one disk, where a majority can commit without it; see `variations.with_rot`. If the power
    takes what says that a segment was durable, its rot looks like a torn write: so it does not
    fail where closed segments rot."""
    scenario = _with_majority(scenario)
    kind = rng.choice(ROTS)
    if kind in ("bit-rot", "open-rot", "index-rot"):
        weights = {
            other: weight
            for other, weight in scenario.fault_weights.items()
            if not FAULT_KINDS[other].loses_page_cache
        }
        scenario = replace(scenario, fault_weights=weights)
    if kind == "open-rot":
        scenario = replace(scenario, log=replace(scenario.log, trust_ms=0))
    if kind == "open-rot" or rng.random() < 0.5:
        scenario = replace(scenario, scrub_bytes_per_s=rng.choice(SCRUB_BYTES_PER_S))
    return _often(kind)(scenario, rng)


def _with_majority(scenario: Scenario) -> Scenario:
    """The same groups, which acknowledge where a voter is away."""
    return replace(
        scenario,
        groups=tuple(
            replace(plan, min_insync=min(plan.min_insync, len(plan.voters) // 2 + 1))
            for plan in scenario.groups
        ),
    )


def _move(scenario: Scenario, rng: random.Random) -> Scenario:
    return replace(scenario, move_interval_ms=rng.choice(MOVE_INTERVAL_MS))


def _delete_records(scenario: Scenario, rng: random.Random) -> Scenario:
    return replace(scenario, delete_interval_ms=rng.choice(DELETE_INTERVAL_MS))


def _retain(scenario: Scenario, rng: random.Random) -> Scenario:
    """By bytes or by time, a few segments."""
    log = scenario.log
    if rng.random() < 0.5:
        kept = log.segment_bytes * rng.choice(RETAINED_SEGMENTS)
        log = replace(log, retention_bytes=max(kept, log.local_retention_bytes))
    else:
        log = replace(log, retention_ms=rng.choice(RETENTION_MS))
    return replace(scenario, log=log)


MIXES: Mapping[str, MixRow] = {
    "lost disks": MixRow(_lose_disks, group="copies"),
    "rot": MixRow(_rot, group="copies"),
    "moves": MixRow(_move, group="copies"),
    "full disks": MixRow(_often("full-disk")),
    "failed flushes": MixRow(_often("failed-flush")),
    "clocks": MixRow(_often("wall-clock-jump")),
    "deletions": MixRow(_delete_records),
    "total retention": MixRow(_retain),
    "lost objects": MixRow(_often("lost-objects")),
    "full caches": MixRow(_often("full-cache")),
}


def draw_mixes(rng: random.Random) -> tuple[str, ...]:
    """The names of the mixes of a seed."""
    names: list[str] = []
    groups: set[str] = set()
    count = rng.choice(COUNTS)
    for name in rng.sample(list(MIXES), len(MIXES)):
        group = MIXES[name].group
        if len(names) < count and (not group or group not in groups):
            names.append(name)
            groups.add(group)
    return tuple(names)
