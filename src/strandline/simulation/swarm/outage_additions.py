"""Additions: what some seeds of the outage swarm have beside their family's faults.

Why:    an outage is judged together with everything else that may go on at the same time.
How:    each is a row: a share of the seeds, and a function that adds it to a scenario. Each draws
        from random numbers of its own, so a change of one leaves all others as they are.
Owns:   nothing.
Source: docs/decisions/0010, 0018 and 0031; design sections 6, 8 and 10."""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from strandline.model.cluster import Domain
from strandline.model.ids import BrokerId
from strandline.simulation.scenarios.scenario import (
    PlannedChange,
    PlannedFault,
    Scenario,
    in_order,
)
from strandline.simulation.swarm.outage_draws import DURATION_MS
from strandline.simulation.swarm.variations import LOST_ANSWERS_SHARE, draw_answer_faults

DRILL = "region-drill"
DRILL_SLOT_MS = 100
"""A drill ends by itself."""
CABLE = "cut-between-regions"
LONG_OUTAGE = "region-power-failure"
BEST_EFFORT = (("balancer.best.effort.enable", "true"),)
BEST_EFFORT_LOST_AFTER_MS = 5_000
BEST_EFFORT_POLICY = "survive: region"
"""A voter in each of the three regions of `ENDURANCE_LAYOUT`."""
RELEASED_MS = (6_000, 18_000)


@dataclass(frozen=True, slots=True)
class Addition:
    """One row. `share`: of the seeds of a family that has it. `draws_as`: the text before the seed
    from which its random numbers come; with another text, seeds would stand for other histories."""

    name: str
    share: float
    draws_as: str
    add: Callable[[random.Random, Scenario], Scenario]
    sentence: str

    def apply(self, scenario: Scenario) -> Scenario:
        """The scenario with this addition, if its seed draws it."""
        rng = random.Random(f"{self.draws_as} {scenario.seed}")
        return self.add(rng, scenario) if rng.random() < self.share else scenario


def add_near_readers(rng: random.Random, scenario: Scenario) -> Scenario:
    """One or two consumers, each with a region, a zone of one, or a zone alone."""
    racks: list[str] = []
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(len(scenario.regions))
        region, zone = scenario.regions[at], scenario.zones[at]
        racks.append(rng.choice((region, region, f"{region}/{zone}", zone)))
    return replace(scenario, near_racks=tuple(racks))


def add_lost_answers(rng: random.Random, scenario: Scenario) -> Scenario:
    """Now and then, for a while."""
    interval_ms = rng.choice((500, 1_500))
    added = draw_answer_faults(rng, active_ms=scenario.active_ms, interval_ms=interval_ms)
    return replace(scenario, faults=in_order(scenario.faults or (), added))


def add_drills(rng: random.Random, scenario: Scenario) -> Scenario:
    """One or two, which end by themselves."""
    planned = list[PlannedFault]()
    for _ in range(rng.choice((1, 2))):
        at_ms = rng.randint(300, scenario.active_ms - 1_000)
        planned.append(PlannedFault(at_ms, DRILL, DRILL_SLOT_MS, rng.getrandbits(32)))
    return replace(scenario, faults=in_order(scenario.faults or (), planned))


def add_cut_cables(rng: random.Random, scenario: Scenario) -> Scenario:
    """Now and then, for long enough that the controller appoints a leader; only with three
    regions."""
    if len(set(scenario.regions)) < 3:
        return scenario
    cuts = []
    at_ms = rng.randint(300, 1_500)
    while at_ms < scenario.active_ms:
        lasts_ms = rng.randint(*DURATION_MS)
        cuts.append(PlannedFault(at_ms, CABLE, lasts_ms, rng.getrandbits(32)))
        at_ms += lasts_ms + rng.randint(100, 2_000)
    return replace(scenario, faults=in_order(scenario.faults or (), cuts))


def add_best_effort(rng: random.Random, scenario: Scenario) -> Scenario:
    """The region is gone, the policy asks for a voter in each of the three, and an operator
    releases all of them, so that replicas may be placed against the policy."""
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


def add_maintenance(rng: random.Random, scenario: Scenario) -> Scenario:
    """One or two brokers, for a while."""
    changes: list[PlannedChange] = []
    brokers = range(1, len(scenario.regions) + 1)
    for broker in rng.sample(brokers, rng.choice((1, 1, 2))):
        begin_ms = rng.randint(0, scenario.active_ms // 2)
        end_ms = begin_ms + rng.randint(300, scenario.active_ms // 2)
        for at_ms, in_maintenance in ((begin_ms, True), (end_ms, False)):
            changes.append(
                PlannedChange(at_ms, broker=BrokerId(broker), in_maintenance=in_maintenance)
            )
    return _with_changes(scenario, changes)


def add_rulings(rng: random.Random, scenario: Scenario) -> Scenario:
    """Of zones and regions, whether these are down or not."""
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
    return _with_changes(scenario, changes)


def _with_changes(scenario: Scenario, changes: Iterable[PlannedChange]) -> Scenario:
    both = sorted((*scenario.changes, *changes), key=lambda one: one.at_ms)
    return replace(scenario, changes=tuple(both))


NEAR_READERS = Addition(
    "near readers",
    0.3,
    "outage near readers",
    add_near_readers,
    "Consumers say in which region or zone they are, and read from a replica near them.",
)
MAINTENANCE = Addition(
    "maintenance",
    0.15,
    "outage maintenance",
    add_maintenance,
    "Brokers are put into maintenance for a while, and lead nothing then.",
)
RULINGS = Addition(
    "rulings",
    0.2,
    "outage rulings",
    add_rulings,
    "An operator holds, releases or gives up zones and regions, for a while.",
)
CUT_CABLES = Addition(
    "cut cables",
    0.1,
    "outage cable cuts",
    add_cut_cables,
    "Two of three regions do not reach each other, and the third reaches both.",
)
DRILLS = Addition(
    "drills",
    0.06,
    "outage drills",
    add_drills,
    "A region cuts itself off for a drill.",
)
LOST_ANSWERS = Addition(
    "lost answers",
    LOST_ANSWERS_SHARE,
    "outage severed replies",
    add_lost_answers,
    "Clients do not get the answers of a broker, or their connections are reset.",
)
BEST_EFFORT_PLACEMENT = Addition(
    "best effort",
    0.5,
    "outages with best effort",
    add_best_effort,
    "The region is released, and replicas are placed against their policy until it is back.",
)
