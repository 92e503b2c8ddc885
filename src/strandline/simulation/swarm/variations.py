"""What is varied about a scenario once it is drawn, each from random numbers of its own.

Why:    what the swarm learned to draw later shall not change the seeds that it does not concern:
        they are regressions, and short cuts to planted mistakes.
How:    `draw(seed)` is `Scenario.draw(seed)`, with some of these:
            deletions          an admin deletes the oldest records of topics
            cached writes      `write.caching`: half of them in a world whose power never fails,
                               where all is kept; in the others acks=all promises what acks=1 does
            moves              an admin moves the replicas of topics, where no disk is lost
            observers          topics of whole brokers have one, by a policy that pins everybody
            a distrusted disk  one broker's disk lies about flushes, or bits of what it holds flip,
                               in the segment that is written to as well. What is lost then, nobody
                               may know to be missing; so an acknowledgement waits for one copy
                               more than a majority, and no other disk is lost (`damage`).
            tombstones         producers with acks=all delete keys of compacted topics, for which
                               tombstones last for a few seconds, and somebody reads whole replicas
            rot                of one disk, below logs that are open, beside them, or in the
                               journal of votes, where no other disk is lost
            the scrub          goes round several times, mostly where something rots
            lost answers       of brokers that live on, and connections of clients that are reset,
                               beside all other faults (`client_faults`)
Owns:   nothing.
Source: design section 10; `damage`, `deleters`, `table_readers`, `repairs`, the topic's key
        `write.caching`."""

import random
from collections.abc import Mapping
from dataclasses import replace

from strandline.simulation.faults.kinds import ANSWER_FAULTS, FAULT_KINDS, ROT_FAULTS
from strandline.simulation.scenarios.scenario import (
    CONSUMER_GROUP_PAUSE,
    KIB,
    TOMBSTONE_MS_MIN,
    GroupPlan,
    PlannedFault,
    Scenario,
)
from strandline.storage.config import LogConfig

TIERED_SEGMENT_BYTES = (1 * KIB, 4 * KIB)
TIERED_BUCKETS = ("east", "west")
TIER_INTERVAL_MS = (10, 30)
TIERED_MS = 8_000
"""Segments have to be closed and uploaded while there is load."""
TIERED_PAUSE_MS = 800
"""Between two faults on average."""
TIERED_PRODUCER_MS_MAX = 25
DELETING_SHARE = 0.4
DELETE_INTERVAL_MS = (50, 200, 600)
CACHED_SHARE = 0.15
FLUSH_MS = (20, 200, 2_000)
FLUSH_MESSAGES = (10, 1_000_000)
OBSERVING_SHARE = 0.3
MOVING_SHARE = 0.3
MOVE_INTERVAL_MS = (300, 1_000, 3_000)
DISTRUST_SHARE = 0.15
DISTRUST = ("lying-disk", "rotten-tail")
LOST_ANSWERS_SHARE = 0.2
OTHER_LOSSES = ("lost-disk", "bit-rot", "configuration-change")
"""What would be a second disk, or make another broker a voter."""
TOMBSTONES_SHARE = 0.4
TOMBSTONE_RATIOS = (0.05, 0.2, 0.5)
TOMBSTONE_MS = (TOMBSTONE_MS_MIN, TOMBSTONE_MS_MIN, 3_000)
ABSENCE_SHARE = 0.7
"""In so many of these seeds brokers are away for a while, mostly longer than tombstones last."""
DELETED_KEY_COUNTS = (30, 300, 1_000, 3_000)
"""Of many keys most have no record behind their tombstone."""
DELETING_SEGMENT_BYTES = (2 * KIB, 2 * KIB, 8 * KIB)
"""What lies in the last segment is not compacted."""
DELETING_MAP_BYTES = (8 * KIB, 1024 * KIB)
DELETING_MS = 8_000
"""Tombstones have to become old while there is load."""
DELETING_INTERVAL_MS_MAX = 25
DELETING_PAUSE_MS = 1_000
"""Between two faults on average: where nothing is written, nothing is deleted."""
MARK_INTERVAL_MS = (10, 100, 1_000, LogConfig().mark_interval_ms)
ROT_SHARE = 0.1
LOG_ROTS = (
    ("open-rot",),
    ("open-rot", "journal-rot"),
    ("journal-rot",),
    ("power-failure-rot",),
    ("power-failure-rot", "journal-rot"),
)
INDEX_ROTS = (("index-rot",), ("index-rot", "journal-rot"))
ROTTEN_SEGMENT_BYTES_MAX = 4 * KIB
"""What rots are mostly closed segments, and what lies beside them."""
SCRUB_SHARE = 0.02
ROT_SCRUB_SHARE = 0.25
SCRUB_BYTES_PER_S = (256 * KIB, 4 * 1024 * KIB)
"""A round each second, or every few seconds."""


def draw(seed: int) -> Scenario:
    """The scenario of a seed."""
    drawn = with_distrust(with_caching(with_deletions(with_marks(Scenario.draw(seed)))))
    drawn = with_scrub(with_rot(with_tombstones(with_observers(with_moves(drawn)))))
    return with_lost_answers(drawn)


def with_marks(scenario: Scenario) -> Scenario:
    """When it is noted what is durable: mostly sooner than in a broker, whose histories are
    longer."""
    rng = random.Random(f"marks of {scenario.seed}")
    log = replace(scenario.log, mark_interval_ms=rng.choice(MARK_INTERVAL_MS))
    return replace(scenario, log=log)


def with_deletions(scenario: Scenario) -> Scenario:
    """Deletions, for some seeds, where there can be any."""
    rng = random.Random(f"deletions of {scenario.seed}")
    can_delete = scenario.has_brokers and not scenario.key_count
    if rng.random() >= DELETING_SHARE or not can_delete or scenario.group_consumer_count:
        return scenario
    return replace(scenario, delete_interval_ms=rng.choice(DELETE_INTERVAL_MS))


def with_tiering(scenario: Scenario) -> Scenario:
    """Remote storage of groups without brokers: commands of uploads, checkpoints, and a local
    retention that removes what two buckets, or one, have. For swarms of its own, not for `draw`."""
    rng = random.Random(f"tiers of {scenario.seed}")
    scenario = scenario.of_groups()
    segment_bytes = rng.choice(TIERED_SEGMENT_BYTES)
    log = replace(
        scenario.log,
        segment_bytes=segment_bytes,
        retention_bytes=-1,
        delete=True,
        compacted=False,
        remote_storage=True,
        remote_buckets=TIERED_BUCKETS,
        remote_copies_min=rng.choice((0, 1)),
        local_retention_ms=-1,
        local_retention_bytes=rng.choice((0, segment_bytes)),
    )
    return replace(
        scenario,
        key_count=0,
        tombstone_ratio=0.0,
        log=log,
        tier_interval_ms=rng.choice(TIER_INTERVAL_MS),
        active_ms=max(scenario.active_ms, TIERED_MS),
        fault_interval_ms=max(scenario.fault_interval_ms, TIERED_PAUSE_MS),
        producers=tuple(
            replace(plan, interval_ms=min(plan.interval_ms, TIERED_PRODUCER_MS_MAX))
            for plan in scenario.producers
        ),
    )


def with_caching(scenario: Scenario) -> Scenario:
    """Cached writes, for some seeds."""
    rng = random.Random(f"caching of {scenario.seed}")
    if rng.random() >= CACHED_SHARE:
        return scenario
    log = replace(
        scenario.log,
        write_caching=True,
        flush_ms=rng.choice(FLUSH_MS),
        flush_messages=rng.choice(FLUSH_MESSAGES),
    )
    weights = scenario.fault_weights
    # What a group has read and committed may be beyond what is left of a topic.
    if scenario.group_consumer_count or rng.random() < 0.5:
        weights = _without_power_failures(weights)
    return replace(scenario, log=log, fault_weights=weights)


def _without_power_failures(weights: Mapping[str, int]) -> dict[str, int]:
    return {
        kind: weight for kind, weight in weights.items() if not FAULT_KINDS[kind].loses_page_cache
    }


def with_distrust(scenario: Scenario) -> Scenario:
    """A disk that is not to be trusted, for some seeds.

    Whole brokers have partitions of their own that wait for a majority alone: no lies there."""
    rng = random.Random(f"distrust of {scenario.seed}")
    if rng.random() >= DISTRUST_SHARE or scenario.log.write_caching:
        return scenario
    kinds = DISTRUST[1:] if scenario.has_brokers else DISTRUST
    drawn = {kind: rng.choice((1, 2)) for kind in kinds if rng.random() < 0.7}
    weights = {
        kind: weight for kind, weight in scenario.fault_weights.items() if kind not in OTHER_LOSSES
    }
    return replace(
        scenario,
        fault_weights=weights | (drawn or {kinds[0]: 1}),
        groups=tuple(
            replace(plan, min_insync=len(plan.voters) // 2 + 2) for plan in scenario.groups
        ),
    )


def with_moves(scenario: Scenario) -> Scenario:
    """Moves, for some seeds; the disks stay, as which may go is a question about the voters."""
    rng = random.Random(f"moves of {scenario.seed}")
    is_distrusted = bool(scenario.fault_weights.keys() & set(DISTRUST))
    can_move = scenario.has_brokers and not scenario.log.write_caching and not is_distrusted
    if rng.random() >= MOVING_SHARE or not can_move:
        return scenario
    weights = {
        kind: weight for kind, weight in scenario.fault_weights.items() if kind not in OTHER_LOSSES
    }
    return replace(scenario, fault_weights=weights, move_interval_ms=rng.choice(MOVE_INTERVAL_MS))


def with_observers(scenario: Scenario, *, share: float = OBSERVING_SHARE) -> Scenario:
    """Observers, for some seeds of whole brokers; those of groups are drawn with them."""
    rng = random.Random(f"observers of {scenario.seed}")
    if rng.random() >= share or not scenario.has_brokers:
        return scenario
    return replace(
        scenario, groups=tuple(_observed(plan, scenario, rng) for plan in scenario.groups)
    )


def with_lost_answers(scenario: Scenario) -> Scenario:
    """Answers that are lost, and connections of clients that are reset, for some seeds."""
    rng = random.Random(f"dropped answers of {scenario.seed}")
    if rng.random() >= LOST_ANSWERS_SHARE:
        return scenario
    interval_ms = rng.choice((300, 1_000))
    if scenario.group_consumer_count:
        interval_ms *= CONSUMER_GROUP_PAUSE
    faults = draw_answer_faults(rng, active_ms=scenario.active_ms, interval_ms=interval_ms)
    return replace(scenario, answer_faults=faults)


def draw_answer_faults(
    rng: random.Random, *, active_ms: int, interval_ms: int
) -> tuple[PlannedFault, ...]:
    """One kind or both of what strikes clients alone, now and then; mostly not for long."""
    kinds = rng.choice((ANSWER_FAULTS, ANSWER_FAULTS, ANSWER_FAULTS[:1], ANSWER_FAULTS[1:]))
    planned: list[PlannedFault] = []
    at_ms = rng.randint(1, interval_ms)
    while at_ms < active_ms:
        kind = rng.choice(kinds)
        duration_ms = rng.randint(*FAULT_KINDS[kind].duration_ms)
        planned.append(PlannedFault(at_ms, kind, duration_ms, rng.getrandbits(32)))
        at_ms += rng.randint(1, 2 * interval_ms)
    return tuple(planned)


def _observed(plan: GroupPlan, scenario: Scenario, rng: random.Random) -> GroupPlan:
    others = [one for one in scenario.brokers if one not in plan.voters]
    if not others or rng.random() < 0.3:
        return plan
    observer = rng.choice(others)
    return replace(plan, observers=(observer,), hosts=(*plan.voters, observer))


def with_tombstones(scenario: Scenario) -> Scenario:
    """Tombstones, for some seeds with compacted logs.

    `delete.retention.ms` is counted by wall clocks, so these do not jump. What is written while a
    voter is away is what it may miss, so acknowledgements wait for a majority alone."""
    rng = random.Random(f"table readers in {scenario.seed}")
    is_distrusted = bool(scenario.fault_weights.keys() & set(DISTRUST))
    can_delete = any(plan.acks == -1 for plan in scenario.producers) and not is_distrusted
    if rng.random() >= TOMBSTONES_SHARE or not scenario.key_count or not can_delete:
        return scenario
    if scenario.log.write_caching:
        return scenario
    active_ms = max(scenario.active_ms, DELETING_MS)
    weights = {
        kind: weight for kind, weight in scenario.fault_weights.items() if kind != "wall-clock-jump"
    }
    if rng.random() < ABSENCE_SHARE:
        weights["absence"] = 1 + sum(weights.values()) // 2
    return replace(
        scenario,
        active_ms=active_ms,
        fault_interval_ms=max(scenario.fault_interval_ms, DELETING_PAUSE_MS),
        fault_weights=weights,
        groups=tuple(map(_with_majority, scenario.groups)),
        producers=tuple(
            replace(plan, interval_ms=min(plan.interval_ms, DELETING_INTERVAL_MS_MAX))
            for plan in scenario.producers
        ),
        key_count=rng.choice(DELETED_KEY_COUNTS),
        tombstone_ratio=rng.choice(TOMBSTONE_RATIOS),
        log=replace(
            scenario.log,
            segment_bytes=rng.choice(DELETING_SEGMENT_BYTES),
            delete_retention_ms=rng.choice(TOMBSTONE_MS),
            min_cleanable_dirty_ratio=0.0,
            compaction_map_bytes=rng.choice(DELETING_MAP_BYTES),
        ),
    )


def with_rot(scenario: Scenario) -> Scenario:
    """Rot where the swarm's own draws have none, for some seeds: of one disk, and no other is lost.

    It strikes where all groups can commit without that broker. What was closed just before it rots
    under a running process may be marked by files alone that nobody flushes: so there the power
    does not fail (but for the one disk whose journal rots), and nobody believes for a while what
    was written or looked at; else it does, and takes what no mark speaks of.
    Where disks are lost already, or brokers become voters, scenarios stay as they are."""
    rng = random.Random(f"bits that flip of {scenario.seed}")
    others = {"lost-disk", "configuration-change", *DISTRUST}
    can_rot = not (scenario.move_interval_ms or scenario.log.write_caching)
    if rng.random() >= ROT_SHARE or not can_rot or scenario.fault_weights.keys() & others:
        return scenario
    weights = scenario.fault_weights
    weight = 1 + sum(weights.values()) // 4
    kinds = rng.choice(LOG_ROTS if "bit-rot" in weights else LOG_ROTS + INDEX_ROTS)
    log = replace(
        scenario.log, segment_bytes=min(scenario.log.segment_bytes, ROTTEN_SEGMENT_BYTES_MAX)
    )
    if "open-rot" in kinds:
        log = replace(log, trust_ms=0)
        weights = _without_power_failures(weights)
    return replace(
        scenario,
        fault_weights=weights | dict.fromkeys(kinds, weight),
        groups=tuple(map(_with_majority, scenario.groups)),
        log=log,
    )


def _with_majority(plan: GroupPlan) -> GroupPlan:
    """The same group, which acknowledges where a voter is away."""
    return replace(plan, min_insync=min(plan.min_insync, len(plan.voters) // 2 + 1))


def with_scrub(scenario: Scenario) -> Scenario:
    """The scrub, for some seeds; for all where logs rot below who has them open: nobody else meets
    that."""
    rng = random.Random(f"scrubbing from {scenario.seed}")
    rots = bool(scenario.fault_weights.keys() & {"bit-rot", *ROT_FAULTS})
    is_drawn = rng.random() < (ROT_SCRUB_SHARE if rots else SCRUB_SHARE)
    if not is_drawn and "open-rot" not in scenario.fault_weights:
        return scenario
    return replace(scenario, scrub_bytes_per_s=rng.choice(SCRUB_BYTES_PER_S))
