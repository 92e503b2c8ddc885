"""Draws the cluster, the load and the ordinary faults of a seed of the outage swarm.

Why:    every family of these seeds begins with the same kind of cluster, and changes a part of it.
How:    whole brokers in a layout, topics whose voters leave, with and without observers. Histories
        are short, and little is written in them: of those there can be many. Time-outs are mostly
        a fraction of a real cluster's, so that voters leave and return within seconds.
Owns:   nothing.
Source: docs/decisions/0016, 0018, 0020 and 0025; design sections 6, 8 and 10."""

import random
from dataclasses import replace

from strandline.model.ids import BrokerId, GroupId
from strandline.placement.policy.document import Promotion
from strandline.replication.settings import ReplicationSettings
from strandline.simulation.faults.kinds import DOMAIN_FAULTS, FAULT_KINDS
from strandline.simulation.scenarios.scenario import (
    GroupPlan,
    PlannedFault,
    ProducerPlan,
    Scenario,
)
from strandline.simulation.swarm.outage_layouts import LAYOUTS, Layout
from strandline.storage.config import LogConfig

KIB = 1024
POLICIES: tuple[Promotion, ...] = (
    "",
    *("under-min-isr",) * 4,
    *("under-replicated",) * 4,
    *("region-lost",) * 2,
    "leader-is-observer",
)
OUTAGES = ("region-power-failure", "region-cut", "zone-power-failure", "zone-kill")
"""One of them at least is drawn."""
OTHERS = (
    "kill",
    "kill-leader",
    "power-failure",
    "leader-power-failure",
    "total-power-failure",
    "stop",
    "death-in-the-middle",
    "pause",
    "one-way-cut",
    "cut-from-leader",
    "isolation",
    "mute",
    "split",
    "reset",
    "slow-link",
    "lossy-link",
    "failed-flush",
    "leadership-transfer",
    "kill-all",
    "black-hole",
    "late-delivery",
    "stalled-requests",
    "flapping-link",
    "observer-death",
)
PATIENT_SHARE = 0.03
PATIENT_MS = 16_000
"""In so many seeds time-outs are those of a real cluster, and the history is longer."""
ACTIVE_MS = (4_000, 6_000, 8_000)
DURATION_MS = (500, 5_000)


def draw_cluster(seed: int, layout: Layout | None = None) -> Scenario:
    """A cluster of whole brokers whose voters leave when they are lost; no faults yet."""
    rng = random.Random(f"outages {seed}")
    drawn = rng.choices(LAYOUTS, weights=[one.weight for one in LAYOUTS])[0]
    layout = layout or drawn
    groups = tuple(
        _draw_group(rng, layout, GroupId(number + 1)) for number in range(rng.choice((1, 1, 2)))
    )
    one_way_us = _draw_latencies(rng)
    jitter_ratio = rng.choice((0.0, 0.1, 1.0))
    is_patient = rng.random() < PATIENT_SHARE
    return Scenario(
        seed=seed,
        regions=layout.regions,
        zones=_zones(layout.regions),
        one_way_us=one_way_us,
        jitter_ratio=jitter_ratio,
        bytes_per_ms=rng.choice((1_000, 100_000)),
        loss_ratio=rng.choice((0.0, 0.0, 0.002, 0.02)),
        drift_ppm=tuple(rng.choice((0, rng.randint(-2_000, 2_000))) for _ in layout.regions),
        groups=groups,
        producers=_draw_producers(rng, groups),
        consumer_count=1,
        settings=ReplicationSettings(
            heartbeat_interval_ms=100,
            election_timeout_ms=rng.choice((400, 600)),
            election_spread_ms=rng.choice((100, 300)),
            resend_timeout_ms=rng.choice((300, 1_000)),
            append_bytes_max=rng.choice((2 * KIB, 1024 * KIB)),
            inflight_bytes_max=1024 * KIB,
            inflight_count_max=rng.choice((8, 256)),
            patience_ratio=1.0 if is_patient else rng.choice((0.05, 0.15, 0.3)),
        ),
        log=LogConfig(
            segment_bytes=rng.choice((4 * KIB, 256 * KIB)),
            index_interval_bytes=rng.choice((256, 4 * KIB)),
            retention_bytes=-1,
            preallocate=False,
        ),
        flush_us=rng.choice(((100, 2_000), (100, 2_000), (3_000, 20_000))),
        fault_weights={},
        fault_interval_ms=rng.choice((500, 1_000, 1_500)),
        active_ms=PATIENT_MS if is_patient else rng.choice(ACTIVE_MS),
        asks_voters=True,
        has_brokers=True,
        shrinks_voters=True,
        lag_time_max_ms=rng.choice((600, 3_000, 30_000)),
        demotion_delay_ms=0 if is_patient else rng.choice((500, 1_500, 3_000)),
        lost_after_ms=rng.choice((1_000, 1_000, 30_000)),
    )


def _zones(regions: tuple[str, ...]) -> tuple[str, ...]:
    """Two in each region, in turns."""
    return tuple(
        f"{region}-{'ab'[regions[:at].count(region) % 2]}" for at, region in enumerate(regions)
    )


def _draw_group(rng: random.Random, layout: Layout, group: GroupId) -> GroupPlan:
    voters = [BrokerId(one) for one in layout.voters]
    observers = [BrokerId(one) for one in layout.observers]
    if len(voters) > 2 and rng.random() < 0.5:
        voters = rng.sample(voters, rng.randint(2, len(voters) - 1))
    if not observers and rng.random() < 0.8:
        others = [one for one in layout.voters if one not in voters]
        observers = [BrokerId(one) for one in others[:2]]
    promotion = rng.choice(POLICIES) if observers else ""
    placements = ["pinned", "pinned", "regions", "anywhere"]
    if promotion != "region-lost":
        placements.append("confluent")
    return GroupPlan(
        group=group,
        voters=tuple(voters),
        observers=tuple(observers),
        hosts=(*voters, *observers),
        min_insync=rng.choice((1, 2, 2, len(voters), len(voters))),
        promotion=promotion,
        placement=rng.choice(placements),  # type: ignore[arg-type]
    )


def _draw_latencies(rng: random.Random) -> dict[tuple[str, str], int]:
    """{(region, region): microseconds}; far enough to matter, near enough for a short history."""
    latencies: dict[tuple[str, str], int] = {}
    regions = ("east", "west", "south")
    for number, one in enumerate(regions):
        for other in regions[number:]:
            one_way_us = rng.randint(200, 800) if one == other else rng.randint(1_000, 25_000)
            latencies[one, other] = latencies[other, one] = one_way_us
    return latencies


def _draw_producers(rng: random.Random, groups: tuple[GroupPlan, ...]) -> tuple[ProducerPlan, ...]:
    producers = []
    for group in groups:
        for number in range(rng.choice((1, 1, 2))):
            acks = rng.choice((-1, -1, -1, -1, 1)) if number else -1
            producers.append(
                ProducerPlan(
                    name=f"p{group.group}.{number}",
                    group=group.group,
                    acks=acks,
                    is_idempotent=acks == -1 and rng.random() < 0.7,
                    interval_ms=rng.choice((60, 120, 200)),
                    value_bytes_max=rng.choice((20, 300)),
                )
            )
    return tuple(producers)


def of_layout(layout: Layout, plan: GroupPlan, min_insync: int) -> GroupPlan:
    """The group with all voters and observers of a layout, each where that says."""
    voters, observers = (tuple(map(BrokerId, one)) for one in (layout.voters, layout.observers))
    return replace(
        plan,
        voters=voters,
        observers=observers,
        hosts=(*voters, *observers),
        min_insync=min_insync,
        promotion=plan.promotion if observers else "",
        placement="pinned",
    )


def plan_faults(scenario: Scenario, *, with_disks: bool) -> tuple[PlannedFault, ...]:
    """Outages of one kind at least, and some of the other kinds. `with_disks`: disks are lost, of
    one broker at a time, where all that was acknowledged is on others."""
    rng = random.Random(f"outage faults {scenario.seed}")
    kinds = {kind: rng.choice((1, 3)) for kind in OTHERS if rng.random() < 0.15}
    kinds |= dict.fromkeys(rng.sample(OUTAGES, rng.randint(1, 3)), 3)
    if with_disks:
        kinds["spare-disk-lost"] = rng.choice((2, 5))

    def duration_ms(kind: str) -> tuple[int, int]:
        is_of_domain = kind in (*OUTAGES, *DOMAIN_FAULTS)
        least_ms, most_ms = DURATION_MS if is_of_domain else FAULT_KINDS[kind].duration_ms
        return least_ms, max(least_ms, min(most_ms, scenario.active_ms // 2))

    return scenario.draw_faults(rng, kinds, duration_ms)
