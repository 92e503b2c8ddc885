"""The second family of seeds: regions and zones are lost, voters leave, observers stand in.

Why:    what the controller decides while a data centre is gone is asked of it once in years; it has
        to be right then, and the ordinary seeds never come there.
How:    `draw_outages(seed)` is a cluster of whole brokers in one of a few layouts (regions, zones,
        where the controller's voters are), topics whose voters leave, with and without observers,
        and faults of its own. Then, each from random numbers of its own:
            lost disks      of one broker at a time, where all that was acknowledged is on others
            changed keys    `voters.shrink.enable` off and on, and other `min.insync.replicas`; not
                            where disks are lost: without the key a person has to act then
            maintenance     brokers that lead nothing for a while
            rulings         a person holds, releases or gives up zones and regions, for a while
            ambushes        in one of twenty seeds, instead of all these, one fault that lies in
                            wait for arbitration (`targeted_faults`), or a long outage of a region,
                            where
                            rulings may be drawn
            lasting losses  in 15 of a hundred seeds so many brokers or disks are gone for good that
                        a person has to declare a loss, beside fewer of the other faults
            endurance       in one of seventy seeds, instead of all these, a zone or region is gone
                        for so long that every controller has seen it; rulings may be drawn;
                        or a person releases it, and what has no other place is placed against
                        its policy until it is back
            lost regions    in six of a hundred of the other seeds observers stand in for regions
                            only, and one is gone for long enough to be down, beside fewer and
                            smaller faults
            cut cables      in one of ten of the other seeds with three regions two of these do not
                        reach each other
            lost answers    in one of five seeds with such faults or losses brokers are not heard
                            by clients, and connections of clients are reset, too
        near readers    consumers that say where they are, in three of ten seeds
            patience        mostly a fraction of what a real cluster waits for before a voter
                            counts as lost or as back, and observers that are not needed leave,
                            so that much happens in a few seconds
        Histories are short, and little is written in them: of those there can be many.
Owns:   nothing.
Source: docs/decisions/0016, 0018, 0020, 0025, 0027 and 0031; design sections 6, 8 and 10."""

import random
from dataclasses import dataclass, replace

from strandline.model.cluster import Domain
from strandline.model.ids import BrokerId, GroupId
from strandline.placement.policy.document import Promotion
from strandline.replication.settings import ReplicationSettings
from strandline.simulation.faults.kinds import (
    DOMAIN_FAULTS,
    FAULT_KINDS,
    LASTING_LOSS,
    TARGETED_FAULTS,
)
from strandline.simulation.scenarios.scenario import (
    GroupPlan,
    PlannedChange,
    PlannedFault,
    ProducerPlan,
    Scenario,
    in_order,
)
from strandline.simulation.swarm.variations import LOST_ANSWERS_SHARE, draw_answer_faults
from strandline.storage.config import LogConfig

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
LOST_DISK_SHARE = 0.35
CHANGED_KEY_SHARE = 0.25
MAINTENANCE_SHARE = 0.15
RULING_SHARE = 0.2
PATIENT_SHARE = 0.03
PATIENT_MS = 16_000
TARGETED_FAULT_SHARE = 0.05
LASTING_SHARE = 0.15
NEAR_SHARE = 0.3
DRILL_SHARE = 0.06
DRILL = "region-drill"
DRILL_SLOT_MS = 100
"""It ends by itself."""
CABLE_SHARE = 0.1
CABLE = "cut-between-regions"
TARGETED_FAULT_ACTIVE_MS = (6_000, 8_000)
LONG_TIMEOUT_MS, LONG_ACTIVE_MS = 1_500, 15_000
"""Where a lease is to last until a client has seen more elsewhere."""
ACTIVE_MS = (4_000, 6_000, 8_000)
DURATION_MS = (500, 5_000)
KIB = 1024


@dataclass(frozen=True, slots=True)
class Layout:
    """`regions`: where each broker is; the first three are the controller's voters. `voters` and
    `observers`: of the largest group that is made there."""

    regions: tuple[str, ...]
    voters: tuple[int, ...]
    observers: tuple[int, ...] = ()


LAYOUTS = (
    # Two and two, with and without a third site for the controller.
    Layout(("east", "west", "east", "west"), (1, 2, 3, 4)),
    Layout(("east", "west", "south", "east", "west"), (1, 2, 4, 5)),
    # Two voters, and their observers beside them or across.
    Layout(("east", "west", "south", "east", "west"), (1, 4), (2, 5)),
    Layout(("east", "west", "south", "east", "west"), (1, 2), (4, 5)),
    # Two and one, and a replica that only watches.
    Layout(("east", "west", "east"), (1, 2, 3)),
    Layout(("east", "west", "south", "east"), (1, 2, 4), (3,)),
    # All in one region.
    Layout(("east", "east", "east", "east"), (1, 2, 3), (4,)),
    # Three regions.
    Layout(("east", "west", "south", "west"), (1, 2, 3), (4,)),
    # Two and a half data centres: two voters and an observer each, and a third site.
    Layout(("east", "west", "south", "east", "west", "east", "west"), (1, 4, 2, 5), (6, 7)),
)
WEIGHTS = (2, 4, 6, 6, 2, 4, 2, 4, 2)
TARGETED_FAULT_LAYOUTS = (LAYOUTS[1], LAYOUTS[1], LAYOUTS[-1])
"""Two and two voters, and a third site."""
HELD_LAYOUT = Layout(LAYOUTS[1].regions, (1, 2, 3))
LONG_OUTAGE = "region-power-failure"
LOSS_LAYOUTS = (
    Layout(LAYOUTS[1].regions, (1, 4, 5)),
    Layout(LAYOUTS[1].regions, (1, 4, 5), (2,)),
    Layout(LAYOUTS[1].regions, (1, 2, 4), (5,)),
    Layout(LAYOUTS[1].regions, (1, 2, 4, 5)),
    Layout(LAYOUTS[-1].regions, (1, 2, 4, 5, 6), (7,)),
)
"""Of the controller's voters, who are the first three, a majority is left of each of these."""
LOSS_ACTIVE_MS = (7_000, 9_000, 12_000)
LOST_REGION_SHARE = 0.06
THREE_PAIRS = ("east", "west", "south", "east", "west", "south")
LOST_REGION_LAYOUTS = (
    Layout(THREE_PAIRS, (1, 2, 3), (4, 5, 6)),
    Layout(THREE_PAIRS, (1, 2, 3), (4, 5)),
    Layout(THREE_PAIRS, (1, 2), (4, 5)),
    Layout(THREE_PAIRS, (1, 4, 2, 5), (3, 6)),
    Layout(THREE_PAIRS, (1, 4, 2, 5, 3), (6,)),
)
"""Whichever region is lost, it has brokers enough to be down (`outage.brokers.min`)."""
LOST_REGION_MS_MIN = 3_000
"""Whoever has been the controller for long enough sees by then that it is down."""
ENDURANCE_SHARE = 0.015
ENDURANCE_LAYOUT = Layout(LAYOUTS[-1].regions, (1, 2, 6))
"""Two zones of it have two brokers."""
ENDURANCE_ACTIVE_MS, ENDURANCE_LOST_AFTER_MS = 38_000, 28_000
"""Brokers are lost a little later than it takes to see that their zone is (`outages.SIGHT_MS`)."""
ENDURED = ("region-power-failure", "zone-power-failure", "zone-kill")
STRIKES_SEVERAL = (*ENDURED, "total-power-failure", "kill-all")
"""Where one of these ends, brokers start that another one keeps away."""
BEST_EFFORT_SHARE = 0.5
BEST_EFFORT = (("balancer.best.effort.enable", "true"),)
BEST_EFFORT_LOST_AFTER_MS = 5_000
BEST_EFFORT_POLICY = "survive: region"
"""A voter in each of the three regions of `ENDURANCE_LAYOUT`."""
RELEASED_MS = (6_000, 18_000)


def draw_outages(seed: int) -> Scenario:
    """The scenario of a seed of this family."""
    targeted_fault = random.Random(f"outage ambushes {seed}")
    if targeted_fault.random() < TARGETED_FAULT_SHARE:
        return _lie_in_wait(targeted_fault, seed)
    losses = random.Random(f"lasting loss {seed}")
    if losses.random() < LASTING_SHARE:
        return _with_lost_answers(_with_near_readers(_lose_for_good(losses, seed)))
    endurance = random.Random(f"outage endurance {seed}")
    if endurance.random() < ENDURANCE_SHARE:
        return _with_best_effort(_endure(endurance, seed))
    regions = random.Random(f"outage lost regions {seed}")
    if regions.random() < LOST_REGION_SHARE:
        return _with_lost_answers(_with_near_readers(_lose_a_region(regions, seed)))
    scenario = _with_near_readers(_draw(seed))
    disks = random.Random(f"outage disks {seed}").random() < LOST_DISK_SHARE
    scenario = replace(scenario, faults=_plan_faults(scenario, with_disks=disks))
    keys = () if disks else _changed_keys(scenario)
    changes = (*keys, *_maintenance(scenario), *_rulings(scenario))
    scenario = replace(scenario, changes=tuple(sorted(changes, key=lambda one: one.at_ms)))
    return _with_lost_answers(_with_drills(_with_cut_cables(scenario)))


def _with_lost_answers(scenario: Scenario) -> Scenario:
    """For some seeds, answers that are lost, and connections of clients that are reset."""
    rng = random.Random(f"outage severed replies {scenario.seed}")
    if rng.random() >= LOST_ANSWERS_SHARE:
        return scenario
    interval_ms = rng.choice((500, 1_500))
    added = draw_answer_faults(rng, active_ms=scenario.active_ms, interval_ms=interval_ms)
    return replace(scenario, faults=in_order(scenario.faults or (), added))


def _with_drills(scenario: Scenario) -> Scenario:
    """For some seeds, regions that cut themselves off, one or two times."""
    rng = random.Random(f"outage drills {scenario.seed}")
    if rng.random() >= DRILL_SHARE:
        return scenario
    planned = list(scenario.faults or ())
    for _ in range(rng.choice((1, 2))):
        at_ms = rng.randint(300, scenario.active_ms - 1_000)
        planned.append(PlannedFault(at_ms, DRILL, DRILL_SLOT_MS, rng.getrandbits(32)))
    return replace(scenario, faults=tuple(sorted(planned, key=lambda one: one.at_ms)))


def _with_cut_cables(scenario: Scenario) -> Scenario:
    """For some seeds with three regions, cuts between two of these, now and then, long enough for
    somebody to be seated."""
    rng = random.Random(f"outage cable cuts {scenario.seed}")
    if len(set(scenario.regions)) < 3 or rng.random() >= CABLE_SHARE:
        return scenario
    cuts = []
    at_ms = rng.randint(300, 1_500)
    while at_ms < scenario.active_ms:
        lasts_ms = rng.randint(*DURATION_MS)
        cuts.append(PlannedFault(at_ms, CABLE, lasts_ms, rng.getrandbits(32)))
        at_ms += lasts_ms + rng.randint(100, 2_000)
    return replace(scenario, faults=in_order(scenario.faults or (), tuple(cuts)))


def _with_near_readers(scenario: Scenario) -> Scenario:
    """For some seeds, consumers that say where they are: a region, or a zone of one."""
    rng = random.Random(f"outage near readers {scenario.seed}")
    if rng.random() >= NEAR_SHARE:
        return scenario
    racks: list[str] = []
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(len(scenario.regions))
        region, zone = scenario.regions[at], scenario.zones[at]
        racks.append(rng.choice((region, region, f"{region}/{zone}", zone)))
    return replace(scenario, near_racks=tuple(racks))


def _lie_in_wait(rng: random.Random, seed: int) -> Scenario:
    """Two and two voters with a third site, and one ambush, which has its time; or a region that is
    gone for so long that its brokers would be lost, and others that could have their replicas."""
    kind = rng.choice((*TARGETED_FAULTS, LONG_OUTAGE))
    layout = HELD_LAYOUT if kind == LONG_OUTAGE else rng.choice(TARGETED_FAULT_LAYOUTS)
    active_ms = rng.choice(TARGETED_FAULT_ACTIVE_MS)
    scenario = _draw(seed, layout)
    groups = tuple(
        replace(
            _of_layout(layout, one, min(one.min_insync, rng.choice((1, 2, 3)))),
            placement="anywhere" if kind == LONG_OUTAGE else one.placement,
        )
        for one in scenario.groups
    )
    settings = replace(scenario.settings, patience_ratio=rng.choice((0.15, 0.3)))
    if kind == "late-fence":
        active_ms = LONG_ACTIVE_MS
        settings = replace(settings, election_timeout_ms=LONG_TIMEOUT_MS)
    begin_ms = rng.randint(300, 1_500)
    rulings = _rulings(scenario) if kind == LONG_OUTAGE else ()
    return replace(
        scenario,
        groups=groups,
        settings=settings,
        faults=(PlannedFault(begin_ms, kind, active_ms - begin_ms, rng.getrandbits(32)),),
        active_ms=active_ms,
        consumer_count=rng.randint(1, 4),
        changes=tuple(sorted(rulings, key=lambda one: one.at_ms)),
        lost_after_ms=1_000 if kind == LONG_OUTAGE else scenario.lost_after_ms,
    )


def _endure(rng: random.Random, seed: int) -> Scenario:
    """A zone or region is gone, and nothing else happens."""
    scenario = replace(
        _draw(seed, ENDURANCE_LAYOUT),
        active_ms=ENDURANCE_ACTIVE_MS,
        lost_after_ms=ENDURANCE_LOST_AFTER_MS,
    )
    groups = tuple(
        replace(_of_layout(ENDURANCE_LAYOUT, one, rng.choice((1, 2))), placement="anywhere")
        for one in scenario.groups
    )
    begin_ms = rng.randint(300, 1_500)
    duration_ms = ENDURANCE_ACTIVE_MS - begin_ms
    fault = PlannedFault(begin_ms, rng.choice(ENDURED), duration_ms, rng.getrandbits(32))
    rulings = sorted(_rulings(scenario), key=lambda one: one.at_ms)
    return replace(scenario, groups=groups, faults=(fault,), changes=tuple(rulings))


def _with_best_effort(scenario: Scenario) -> Scenario:
    """For some of those, a region that is gone, a policy that no other two can keep, and a person
    who says that nobody is to wait for it."""
    rng = random.Random(f"outages with best effort {scenario.seed}")
    if rng.random() >= BEST_EFFORT_SHARE:
        return scenario
    wanted = [
        PlannedChange(0, group=one.group, policy=BEST_EFFORT_POLICY) for one in scenario.groups
    ]
    at_ms = rng.randint(*RELEASED_MS)
    released = [
        PlannedChange(at_ms, domain=(one,), ruling="release", for_ms=scenario.active_ms)
        for one in sorted(set(scenario.regions))
    ]
    return replace(
        scenario,
        faults=tuple(replace(one, kind=LONG_OUTAGE) for one in scenario.faults or ()),
        changes=(*wanted, *released),
        cluster_configs=BEST_EFFORT,
        lost_after_ms=BEST_EFFORT_LOST_AFTER_MS,
    )


def _lose_for_good(rng: random.Random, seed: int) -> Scenario:
    """Fewer voters are left than hold everything, and half of the other faults strike."""
    layout = rng.choice(LOSS_LAYOUTS)
    scenario = _draw(seed, layout)
    first, *others = scenario.groups
    scenario = replace(
        scenario,
        groups=(_of_layout(layout, first, rng.choice((1, 2))), *others),
        settings=replace(scenario.settings, patience_ratio=rng.choice((0.15, 0.5, 1.0))),
        active_ms=rng.choice(LOSS_ACTIVE_MS),
        consumer_count=rng.randint(1, 2),
    )
    planned = [one for one in _plan_faults(scenario, with_disks=False) if rng.random() < 0.5]
    begin_ms = rng.randint(300, 2_000)
    duration_ms = scenario.active_ms - begin_ms
    planned.append(PlannedFault(begin_ms, LASTING_LOSS, duration_ms, rng.getrandbits(32)))
    return replace(scenario, faults=tuple(sorted(planned, key=lambda one: one.at_ms)))


def _lose_a_region(rng: random.Random, seed: int) -> Scenario:
    """Observers stand in for regions only, and one is gone for long enough; beside it half of the
    faults strike that do not bring it back."""
    layout = rng.choice(LOST_REGION_LAYOUTS)
    scenario = _draw(seed, layout)
    groups = tuple(
        replace(
            _of_layout(layout, one, min(one.min_insync, rng.choice((1, 2)))),
            promotion="region-lost",
        )
        for one in scenario.groups
    )
    scenario = replace(
        scenario, groups=groups, active_ms=rng.choice(LOSS_ACTIVE_MS), lost_after_ms=1_000
    )
    planned = _plan_faults(scenario, with_disks=False)
    others = [one for one in planned if one.kind not in STRIKES_SEVERAL and rng.random() < 0.5]
    begin_ms = rng.randint(300, 2_000)
    duration_ms = rng.randint(LOST_REGION_MS_MIN, scenario.active_ms - begin_ms)
    outage = PlannedFault(begin_ms, LONG_OUTAGE, duration_ms, rng.getrandbits(32))
    return replace(scenario, faults=in_order(others, (outage,)))


def _of_layout(layout: Layout, plan: GroupPlan, min_insync: int) -> GroupPlan:
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


def _draw(seed: int, layout: Layout | None = None) -> Scenario:
    rng = random.Random(f"outages {seed}")
    drawn = rng.choices(LAYOUTS, weights=WEIGHTS)[0]
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


def _plan_faults(scenario: Scenario, *, with_disks: bool) -> tuple[PlannedFault, ...]:
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


def _changed_keys(scenario: Scenario) -> list[PlannedChange]:
    """Off and on again, or off for good; or so many others have to write."""
    rng = random.Random(f"outage keys {scenario.seed}")
    changes: list[PlannedChange] = []
    for plan in scenario.groups:
        if rng.random() >= CHANGED_KEY_SHARE:
            continue
        for _ in range(rng.randint(1, 3)):
            at_ms = rng.randint(0, scenario.active_ms)
            if rng.random() < 0.5:
                changes.append(PlannedChange(at_ms, group=plan.group, shrinks=rng.random() < 0.5))
            else:
                least = rng.randint(1, len(plan.voters))
                changes.append(PlannedChange(at_ms, group=plan.group, min_insync=least))
    return changes


def _maintenance(scenario: Scenario) -> list[PlannedChange]:
    """A broker or two, for a while."""
    rng = random.Random(f"outage maintenance {scenario.seed}")
    if rng.random() >= MAINTENANCE_SHARE:
        return []
    changes: list[PlannedChange] = []
    brokers = range(1, len(scenario.regions) + 1)
    for broker in rng.sample(brokers, rng.choice((1, 1, 2))):
        begin_ms = rng.randint(0, scenario.active_ms // 2)
        end_ms = begin_ms + rng.randint(300, scenario.active_ms // 2)
        for at_ms, is_spared in ((begin_ms, True), (end_ms, False)):
            changes.append(PlannedChange(at_ms, broker=BrokerId(broker), is_spared=is_spared))
    return changes


def _rulings(scenario: Scenario) -> list[PlannedChange]:
    """What a person says of zones and regions, be they down or not."""
    rng = random.Random(f"outage rulings {scenario.seed}")
    if rng.random() >= RULING_SHARE:
        return []
    changes: list[PlannedChange] = []
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(scenario.regions))
        domain: Domain = (scenario.regions[at],)
        if rng.random() < 0.3:
            domain = (scenario.regions[at], scenario.zones[at])
        changes.append(
            PlannedChange(
                rng.randint(0, scenario.active_ms),
                domain=domain,
                ruling=rng.choice(("hold", "hold", "release", "lost")),
                for_ms=rng.randint(500, 4_000),
            )
        )
    return changes
