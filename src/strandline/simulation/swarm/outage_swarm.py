"""The second family of seeds: regions and zones are lost, voters leave, observers stand in.

Why:    what the controller decides while a data centre is gone is asked of it once in years; it has
        to be right then, and the ordinary seeds never come there.
How:    `FAMILIES` is the table: which kinds of histories there are, how many of the seeds each
        has, and what is added to them (`outage_additions`). `draw_outages(seed)` takes the row
        of the seed. Each row draws from random numbers of its own.
Owns:   nothing.
Source: docs/decisions/0016, 0018, 0020, 0025, 0027 and 0031; design sections 6, 8 and 10."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from strandline.simulation.faults.kinds import LASTING_LOSS, TARGETED_FAULTS
from strandline.simulation.scenarios.scenario import (
    PlannedChange,
    PlannedFault,
    Scenario,
    in_order,
)
from strandline.simulation.swarm.outage_additions import (
    BEST_EFFORT_PLACEMENT,
    CUT_CABLES,
    DRILLS,
    LONG_OUTAGE,
    LOST_ANSWERS,
    MAINTENANCE,
    NEAR_READERS,
    RULINGS,
    Addition,
)
from strandline.simulation.swarm.outage_draws import draw_cluster, of_layout, plan_faults
from strandline.simulation.swarm.outage_layouts import (
    ENDURANCE_LAYOUT,
    HELD_LAYOUT,
    LOSS_LAYOUTS,
    LOST_REGION_LAYOUTS,
    TARGETED_FAULT_LAYOUTS,
)

TARGETED_FAULT_ACTIVE_MS = (6_000, 8_000)
LONG_TIMEOUT_MS, LONG_ACTIVE_MS = 1_500, 15_000
"""Where a lease is to last until a client has seen more elsewhere."""
LOSS_ACTIVE_MS = (7_000, 9_000, 12_000)
ENDURANCE_ACTIVE_MS, ENDURANCE_LOST_AFTER_MS = 38_000, 28_000
"""Brokers are lost a little later than it takes to see that their zone is (`outages.SIGHT_MS`)."""
ENDURED = ("region-power-failure", "zone-power-failure", "zone-kill")
LOST_REGION_MS_MIN = 3_000
"""A broker that has been the controller for long enough sees by then that the region is down."""
FAILS_SEVERAL = (*ENDURED, "total-power-failure", "kill-all")
"""Where one of these ends, brokers start that another one keeps away."""
LOST_DISK_SHARE = 0.35
CHANGED_KEY_SHARE = 0.25
"""Of the groups, where no disks are lost: without the key an operator has to act then."""


@dataclass(frozen=True, slots=True)
class Family:
    """One row. `share`: of all seeds. `draws_as`: the text before the seed from which its random
    numbers come; with another text, seeds would stand for other histories."""

    name: str
    share: float
    draws_as: str
    draw: Callable[[random.Random, int], Scenario]
    additions: tuple[Addition, ...]
    sentence: str


def draw_targeted_fault(rng: random.Random, seed: int) -> Scenario:
    """Two and two voters with a third site, and one targeted fault; or a region that is gone for so
    long that its brokers would be lost, and others that could have their replicas."""
    kind = rng.choice((*TARGETED_FAULTS, LONG_OUTAGE))
    layout = HELD_LAYOUT if kind == LONG_OUTAGE else rng.choice(TARGETED_FAULT_LAYOUTS)
    active_ms = rng.choice(TARGETED_FAULT_ACTIVE_MS)
    scenario = draw_cluster(seed, layout)
    groups = tuple(
        replace(
            of_layout(layout, one, min(one.min_insync, rng.choice((1, 2, 3)))),
            placement="anywhere" if kind == LONG_OUTAGE else one.placement,
        )
        for one in scenario.groups
    )
    settings = replace(scenario.settings, patience_ratio=rng.choice((0.15, 0.3)))
    if kind == "late-fence":
        active_ms = LONG_ACTIVE_MS
        settings = replace(settings, election_timeout_ms=LONG_TIMEOUT_MS)
    begin_ms = rng.randint(300, 1_500)
    changes = RULINGS.apply(scenario).changes if kind == LONG_OUTAGE else ()
    return replace(
        scenario,
        groups=groups,
        settings=settings,
        faults=(PlannedFault(begin_ms, kind, active_ms - begin_ms, rng.getrandbits(32)),),
        active_ms=active_ms,
        consumer_count=rng.randint(1, 4),
        changes=changes,
        lost_after_ms=1_000 if kind == LONG_OUTAGE else scenario.lost_after_ms,
    )


def draw_lasting_loss(rng: random.Random, seed: int) -> Scenario:
    """Fewer voters are left than hold everything, and half of the other faults strike."""
    layout = rng.choice(LOSS_LAYOUTS)
    scenario = draw_cluster(seed, layout)
    first, *others = scenario.groups
    scenario = replace(
        scenario,
        groups=(of_layout(layout, first, rng.choice((1, 2))), *others),
        settings=replace(scenario.settings, patience_ratio=rng.choice((0.15, 0.5, 1.0))),
        active_ms=rng.choice(LOSS_ACTIVE_MS),
        consumer_count=rng.randint(1, 2),
    )
    planned = [one for one in plan_faults(scenario, with_disks=False) if rng.random() < 0.5]
    begin_ms = rng.randint(300, 2_000)
    duration_ms = scenario.active_ms - begin_ms
    planned.append(PlannedFault(begin_ms, LASTING_LOSS, duration_ms, rng.getrandbits(32)))
    return replace(scenario, faults=tuple(sorted(planned, key=lambda one: one.at_ms)))


def draw_endurance(rng: random.Random, seed: int) -> Scenario:
    """A zone or region is gone, and nothing else happens."""
    scenario = replace(
        draw_cluster(seed, ENDURANCE_LAYOUT),
        active_ms=ENDURANCE_ACTIVE_MS,
        lost_after_ms=ENDURANCE_LOST_AFTER_MS,
    )
    groups = tuple(
        replace(of_layout(ENDURANCE_LAYOUT, one, rng.choice((1, 2))), placement="anywhere")
        for one in scenario.groups
    )
    begin_ms = rng.randint(300, 1_500)
    duration_ms = ENDURANCE_ACTIVE_MS - begin_ms
    fault = PlannedFault(begin_ms, rng.choice(ENDURED), duration_ms, rng.getrandbits(32))
    return RULINGS.apply(replace(scenario, groups=groups, faults=(fault,)))


def draw_lost_region(rng: random.Random, seed: int) -> Scenario:
    """Observers stand in for regions only, and one is gone for long enough; beside it half of the
    faults strike that do not bring it back."""
    layout = rng.choice(LOST_REGION_LAYOUTS)
    scenario = draw_cluster(seed, layout)
    groups = tuple(
        replace(
            of_layout(layout, one, min(one.min_insync, rng.choice((1, 2)))),
            promotion="region-lost",
        )
        for one in scenario.groups
    )
    scenario = replace(
        scenario, groups=groups, active_ms=rng.choice(LOSS_ACTIVE_MS), lost_after_ms=1_000
    )
    planned = plan_faults(scenario, with_disks=False)
    others = [one for one in planned if one.kind not in FAILS_SEVERAL and rng.random() < 0.5]
    begin_ms = rng.randint(300, 2_000)
    duration_ms = rng.randint(LOST_REGION_MS_MIN, scenario.active_ms - begin_ms)
    outage = PlannedFault(begin_ms, LONG_OUTAGE, duration_ms, rng.getrandbits(32))
    return replace(scenario, faults=in_order(others, (outage,)))


def draw_usual(_rng: random.Random, seed: int) -> Scenario:
    """Regions, zones, brokers and links fail; and disks are lost, or keys are changed."""
    scenario = draw_cluster(seed)
    loses_disks = random.Random(f"outage disks {seed}").random() < LOST_DISK_SHARE
    scenario = replace(scenario, faults=plan_faults(scenario, with_disks=loses_disks))
    return scenario if loses_disks else _with_changed_keys(scenario)


def _with_changed_keys(scenario: Scenario) -> Scenario:
    """Voters of some groups stop to leave, or leave again; or another number has to be in sync."""
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
    changes.sort(key=lambda one: one.at_ms)
    return replace(scenario, changes=tuple(changes))


FAMILIES = (
    Family(
        "targeted fault",
        0.05,
        "outage ambushes",
        draw_targeted_fault,
        (),
        "One fault that waits for a step of arbitration, or one long outage of a region.",
    ),
    Family(
        "lasting loss",
        0.1425,
        "lasting loss",
        draw_lasting_loss,
        (NEAR_READERS, LOST_ANSWERS),
        "So many brokers or disks are gone for good that an operator has to declare a loss.",
    ),
    Family(
        "endurance",
        0.0121125,
        "outage endurance",
        draw_endurance,
        (BEST_EFFORT_PLACEMENT,),
        "A zone or region is gone for so long that every controller has seen it.",
    ),
    Family(
        "lost region",
        0.04772325,
        "outage lost regions",
        draw_lost_region,
        (NEAR_READERS, LOST_ANSWERS),
        "Observers stand in for regions only, and one region is gone for long enough to be down.",
    ),
    Family(
        "usual",
        0.74766425,
        "outages",
        draw_usual,
        (NEAR_READERS, MAINTENANCE, RULINGS, CUT_CABLES, DRILLS, LOST_ANSWERS),
        "Outages of regions and zones, other faults, lost disks or changed keys.",
    ),
)
"""The families, by the share of all seeds. Each is drawn among the seeds that no family above
takes; the last one takes the rest."""


def family_of(seed: int) -> Family:
    """The row of a seed."""
    return _drawn(seed)[0]


def draw_outages(seed: int) -> Scenario:
    """The scenario of a seed of this family."""
    family, rng = _drawn(seed)
    scenario = family.draw(rng, seed)
    for addition in family.additions:
        scenario = addition.apply(scenario)
    return scenario


def _drawn(seed: int) -> tuple[Family, random.Random]:
    left = 1.0
    *others, last = FAMILIES
    for family in others:
        rng = random.Random(f"{family.draws_as} {seed}")
        if rng.random() < family.share / left:
            return family, rng
        left -= family.share
    return last, random.Random(f"{last.draws_as} {seed}")
