"""Replicas move by themselves through faults; mistakes of the balancer are found.

Source: docs/decisions/0010-the-balancer.md; design section 10."""

import json
import logging
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import pytest
from tests.simulation.outage_mutants import take_nothing_for_down
from tests.simulation.scenario_checks import kept, scenario_of

from strandline.broker.leadership import draining
from strandline.broker.operations import balancing
from strandline.broker.operations.balancing import Balancing, Findings
from strandline.broker.operations.outages import OutageWatch
from strandline.controller.balancer import fullness, needs
from strandline.controller.balancer.health import NO_SILENCE, Condition, Health
from strandline.controller.decide import brokers
from strandline.controller.outages import judging, marks
from strandline.controller.outages.happenings import Kind
from strandline.controller.outages.marks import Marks, Share
from strandline.model.ids import BrokerId, GroupId
from strandline.placement.solver.plan import Plan
from strandline.placement.solver.repair import Repair, repair
from strandline.simulation.invariants.facts import PlacementKnown
from strandline.simulation.invariants.invariants import InvariantError
from strandline.simulation.invariants.outages import RepairHeldIffZoneDown
from strandline.simulation.invariants.placements import PlacementHolds
from strandline.simulation.scenarios.scenario import PlannedChange, Scenario
from strandline.simulation.swarm.swarm import Outcome, run_scenario

HALF_AN_HOUR_US = 1_800 * 1_000_000
LOADED_MS = 600_000


def run(name: str) -> Outcome:
    """With a mistake that is planted: nothing has to hold."""
    return run_scenario(scenario_of(name), log_level=logging.INFO)


def moved(outcome: Outcome) -> set[str]:
    """The partitions of which the balancer told that they move to other brokers."""
    lines = [
        line
        for line in outcome.trace
        if " moves to brokers " in line and not line.endswith(": leaders-uneven")
    ]
    return {line.split(" moves to ")[0].split()[-1] for line in lines}


@pytest.mark.simulation
def test_what_has_to_be_in_a_lost_region_waits_and_what_may_be_elsewhere_moves() -> None:
    outcome = kept("region-lost-and-returned")
    assert "group-2-0" in moved(outcome) and "group-1-0" not in moved(outcome)
    assert outcome.tally.copied_bytes > 0


@pytest.mark.simulation
def test_a_broker_that_flaps_moves_nothing() -> None:
    outcome = kept("flapping-broker")
    assert outcome.tally.balance_count == 0
    assert outcome.tally.fault_counts == {"kill": 4}


@pytest.mark.simulation
def test_of_a_region_that_is_down_for_ten_minutes_no_byte_is_copied() -> None:
    outcome = kept("region-down-for-ten-minutes")
    assert outcome.tally.balance_count == 0 and not moved(outcome)
    assert outcome.tally.copied_bytes == 0
    assert outcome.tally.acknowledged_count > 1_000
    assert outcome.tally.fault_counts == {"region-power-failure": 1}
    told = [line.split(": region: ")[-1] for line in outcome.trace if "region east is " in line]
    assert len(told) == 2 and told[0].endswith(", 2 of 2 brokers silent")
    assert any("  region: " in line for line in outcome.trace)
    assert told[1].endswith("region east is back, 2 of 2 brokers reachable, after 10 min")


@pytest.mark.simulation
def test_of_a_zone_that_is_down_for_ten_minutes_no_byte_is_copied() -> None:
    outcome = kept("zone-down-for-ten-minutes")
    assert outcome.tally.balance_count == 0 and not moved(outcome)
    assert outcome.tally.copied_bytes == 0
    assert outcome.tally.acknowledged_count > 1_000
    assert outcome.tally.fault_counts == {"zone-power-failure": 1}
    told = [line.split(": zone: ")[-1] for line in outcome.trace if " zone: zone b is " in line]
    assert len(told) == 2 and told[0].endswith(", 2 of 2 brokers silent")
    assert told[1].endswith("zone b is back, 2 of 2 brokers reachable, after 10 min")
    assert not any("  region: " in line for line in outcome.trace)


@pytest.mark.simulation
def test_of_a_zone_that_a_person_holds_no_broker_is_replaced() -> None:
    outcome = kept("zone-held-by-hand")
    assert outcome.tally.ruling_count == 1
    assert outcome.tally.balance_count == 0 and outcome.tally.copied_bytes == 0
    assert outcome.tally.fault_counts == {"power-failure": 1}

    scenario = scenario_of("zone-held-by-hand")
    others = tuple(one for one in scenario.changes if not one.ruling)
    outcome = run_scenario(replace(scenario, changes=others))  # Nobody holds it.
    assert outcome.violation is None
    assert outcome.tally.balance_count > 0 and outcome.tally.copied_bytes > 0


@pytest.mark.simulation
def test_what_goes_on_with_other_voters_than_it_was_placed_with_is_made_anew() -> None:
    """An observer stands in for one that is lost; the last of three votes alone."""
    outcome = kept("lost-voters-are-replaced-while-others-vote")
    assert outcome.tally.fault_counts == {"power-failure": 2}
    assert (
        outcome.tally.role_counts["promotions"] > 0
        and outcome.tally.role_counts["appointments"] == 2
    )
    moves = [line for line in outcome.trace if line.endswith(": broker-lost")]
    assert [line.split()[3] for line in moves] == ["group-1-0", "group-2-0", "group-2-0"]
    assert all(float(line.split()[0]) < 60 for line in moves)  # Long before who is lost is back.


@pytest.mark.simulation
def test_what_is_placed_against_a_policy_while_a_region_is_down_is_undone_when_it_is_back() -> None:
    """That policies are kept in the end is for Convergence to judge."""
    outcome = kept("region-released-best-effort-and-back")
    assert outcome.tally.ruling_count == 1
    moves = [
        line
        for line in outcome.trace
        if " moves to brokers " in line and line.endswith((": best-effort", ": policy-broken"))
    ]
    reasons = [line.rpartition(": ")[2] for line in moves]
    assert reasons == ["best-effort"] * 2 + ["policy-broken"] * 2
    times_s = [float(line.split()[0]) for line in moves]
    assert 45 < times_s[0] <= times_s[1] < 110 < times_s[2]  # Released, and back.
    assert any("region west is back" in line for line in outcome.trace)

    scenario = scenario_of("region-released-best-effort-and-back")
    others = tuple(one for one in scenario.changes if not one.ruling)
    outcome = run_scenario(replace(scenario, changes=others))  # Nobody releases it.
    assert outcome.violation is None and outcome.tally.balance_count == 0


@pytest.mark.simulation
def test_in_half_an_hour_without_faults_there_is_no_alarm() -> None:
    outcome = kept("half-an-hour-without-faults")
    assert outcome.tally.virtual_us > HALF_AN_HOUR_US
    assert_nothing_happened(outcome, group_count=2)


@pytest.mark.simulation
def test_in_half_an_hour_of_jitter_and_lost_packets_there_is_no_alarm() -> None:
    outcome = kept("half-an-hour-on-the-worst-network")
    assert outcome.tally.virtual_us > HALF_AN_HOUR_US
    assert_nothing_happened(outcome, group_count=2)


def assert_nothing_happened(outcome: Outcome, *, group_count: int) -> None:
    assert outcome.violation is None
    kinds = tuple(f"  {kind}: " for kind in Kind)
    assert [line for line in outcome.trace if any(kind in line for kind in kinds)] == []
    assert outcome.tally.balance_count == 0
    assert not any(outcome.tally.role_counts.values())
    # The controller's and the groups', when they began.
    assert outcome.tally.election_count == 1 + group_count


LOADED = ((2, 4, 5), (5, 3, 1), (1, 3, 5), (3, 2, 4))
BATCHES_PER_S = 10


@pytest.mark.simulation
def test_under_load_on_the_worst_network_there_is_no_alarm_either() -> None:
    """Ten batches a second on four partitions, beside which heartbeats come late, and followers lag
    by what is under way."""
    worst = scenario_of("half-an-hour-on-the-worst-network")
    plan, producer = worst.groups[0], worst.producers[0]
    groups = [
        replace(plan, group=GroupId(number), voters=voters, hosts=voters)
        for number, voters in enumerate([tuple(map(BrokerId, one)) for one in LOADED], start=1)
    ]
    producers = [
        replace(
            producer,
            name=f"p{one.group}",
            group=one.group,
            interval_ms=1_000 * len(groups) // BATCHES_PER_S,
        )
        for one in groups
    ]
    scenario = replace(
        worst,
        active_ms=LOADED_MS,
        groups=tuple(groups),
        producers=tuple(producers),
    )
    outcome = run_scenario(scenario, log_level=logging.INFO)
    assert_nothing_happened(outcome, group_count=len(groups))
    assert outcome.tally.acknowledged_count > 0.9 * BATCHES_PER_S * LOADED_MS / 1_000


@pytest.mark.simulation
def test_brokers_are_emptied_through_faults() -> None:
    outcome = kept("decommission-under-load")
    assert moved(outcome) >= {"group-1-0", "group-2-0"}
    assert any(line.endswith(": decommission") for line in outcome.trace)


@pytest.mark.simulation
def test_brokers_are_spared_through_faults_and_lead_nothing_meanwhile() -> None:
    outcome = kept("maintenance-under-load")
    given = [line for line in outcome.trace if ": in maintenance: handing over to broker " in line]
    assert {line.split()[2] for line in given} >= {"1", "3"}
    assert any(line.endswith(": decommission") for line in outcome.trace)


@pytest.mark.simulation
def test_labels_that_change_at_run_time_move_what_they_break_and_start_nobody_anew() -> None:
    outcome = kept("label-changed-at-run-time")
    assert moved(outcome) >= {"group-1-0", "group-2-0"}
    assert "is put into" in "\n".join(outcome.trace)
    changed = [line for line in outcome.trace if "labels were changed to region=" in line]
    assert {line.split()[2] for line in changed} >= {"1", "5"}
    stayed = [line for line in outcome.trace if "; the configuration says region=" in line]
    assert {line.split()[2] for line in stayed} == {"1", "3", "5"}


@pytest.mark.simulation
def test_full_disks_are_relieved_through_faults_as_soon_as_somebody_has_room() -> None:
    outcome = kept("disks-fill-under-load")
    lines = [line for line in outcome.trace if line.endswith(": disk-high")]
    assert {line.split(" moves to ")[0].split()[-1] for line in lines} == {"group-2-0", "group-3-0"}
    for line in lines:
        targets = set(line.split(" moves to brokers ")[1].removesuffix(": disk-high").split(", "))
        assert {"2", "6"} <= targets, line
        assert "1" not in targets, line


FAULTS = (
    "kill", "kill-leader", "power-failure", "leader-power-failure", "total-power-failure",
    "region-power-failure", "isolation", "split", "mute", "death-in-the-middle", "late-delivery",
    "leadership-transfer", "stop", "pause",
)  # fmt: skip
SEEDS = (3, 9, 11, 19, 24, 34, 41, 46)


def with_changes(seed: int) -> Scenario:
    """The whole brokers of a seed, and an operator who changes policies and labels at random."""
    rng, coin = random.Random(f"changes of {seed}"), random.Random(f"running {seed}")
    drawn = Scenario.draw(seed).whole()
    active_ms = rng.choice((10_000, 16_000))
    changes = []
    for at_ms in sorted(rng.randint(0, active_ms - 2_000) for _ in range(rng.randint(2, 6))):
        if rng.random() < 0.8:
            group = rng.choice(drawn.groups).group
            changes.append(PlannedChange(at_ms, group, any_policy(rng, drawn.brokers)))
        else:
            region = rng.choice(("east", "west", "south", "north"))
            broker, at_run_time = rng.choice(drawn.brokers), coin.random() < 0.5
            changes.append(
                PlannedChange(at_ms, broker=broker, region=region, at_run_time=at_run_time)
            )
    return replace(
        drawn,
        group_consumer_count=0,
        active_ms=active_ms,
        lost_after_ms=rng.choice((2_000, 4_000)),
        changes=tuple(changes),
        fault_weights=dict.fromkeys(FAULTS, 1),
        fault_interval_ms=rng.choice((700, 2_000)),
    )


def any_policy(rng: random.Random, brokers: Sequence[BrokerId]) -> str:
    """So many replicas on some of the brokers, which can always be met."""
    count = rng.randint(1, min(4, len(brokers)))
    allowed = rng.sample(brokers, rng.randint(count, len(brokers)))
    where = {"label": "broker", "op": "in", "values": [str(one) for one in allowed]}
    return json.dumps({"rules": [{"count": count, "where": [where]}]})


@pytest.mark.simulation
def test_replicas_move_by_themselves_through_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(balancing, "SLICE_MS", 0)  # Everything happens in the middle of a round.
    outcomes = [run_scenario(with_changes(seed)) for seed in SEEDS]
    assert [outcome.violation for outcome in outcomes] == [None] * len(SEEDS)
    assert sum(outcome.tally.balance_count for outcome in outcomes) > 10
    assert sum(outcome.tally.election_count for outcome in outcomes) > 20


# ---- planted mistakes --------------------------------------------------------------------------


def replace_by_anybody(patch: pytest.MonkeyPatch) -> None:
    """Who takes a replica's place is not asked what it would do to the others, nor what it holds:
    the emptiest may be right by chance."""

    def careless(plan: Plan, *arguments: object, **options: object) -> Repair | None:
        options["loads"] = None
        return repair(replace(plan, hard=(), soft=()), *arguments, **options)  # type: ignore[arg-type]

    patch.setattr(needs, "repair", careless)


def look_only_once(patch: pytest.MonkeyPatch) -> None:
    """What happens after the first round is not seen."""
    honest = Balancing._begin

    def begin(self: Balancing, findings: Findings, now: int) -> None:
        if not findings.round_count:
            honest(self, findings, now)

    patch.setattr(Balancing, "_begin", begin)


def keep_who_is_to_leave(patch: pytest.MonkeyPatch) -> None:
    """Nobody is told to the balancer."""
    patch.setattr(balancing, "leaving_of", lambda _: frozenset())


def leave_full_disks(patch: pytest.MonkeyPatch) -> None:
    """They are given nothing, and nothing moves away."""
    patch.setattr(fullness, "LASTING_MS", 10_000_000)


def keep_leading_in_maintenance(patch: pytest.MonkeyPatch) -> None:
    """Nobody looks whether this broker is to be spared."""
    patch.setattr(draining, "maintained_of", lambda _: frozenset())


def forget_what_was_changed(patch: pytest.MonkeyPatch) -> None:
    """A start takes labels from the configuration alone."""
    patch.setattr(brokers, "carried_over", lambda kept, *, said, says: says)


def hold_nothing(patch: pytest.MonkeyPatch) -> None:
    honest = OutageWatch.look

    def look(
        self: OutageWatch, condition: Condition, silent_since_ms: Mapping[BrokerId, int]
    ) -> Condition:
        honest(self, condition, silent_since_ms)
        return condition

    patch.setattr(OutageWatch, "look", look)


def never_end_an_outage(patch: pytest.MonkeyPatch) -> None:
    honest = marks.is_down

    def is_down(share: Share, marks: Marks, *, was_down: bool) -> bool:
        return was_down or honest(share, marks, was_down=was_down)

    patch.setattr(judging, "is_down", is_down)


def take_the_silent_for_lost(patch: pytest.MonkeyPatch) -> None:
    """A second is enough."""
    honest = Health.step

    def step(
        self: Health,
        now_ms: int,
        *,
        brokers: Collection[BrokerId],
        alive: Collection[BrokerId],
        lost_after_ms: int,
        spared: Collection[BrokerId] = (),
        silent_ms: Mapping[BrokerId, int] = NO_SILENCE,
    ) -> Condition:
        return honest(
            self,
            now_ms,
            brokers=brokers,
            alive=alive,
            lost_after_ms=1_000,
            spared=spared,
            silent_ms=silent_ms,
        )

    patch.setattr(Health, "step", step)


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("plant", "scenario", "promise"),
    [
        (replace_by_anybody, "region-lost-and-returned", "PlacementHolds"),
        (look_only_once, "label-changed", "BalancerProgress"),
        (look_only_once, "label-changed-at-run-time", "BalancerProgress"),
        (forget_what_was_changed, "label-changed-at-run-time", "BalancerProgress"),
        (keep_who_is_to_leave, "decommission-under-load", "BalancerProgress"),
        (leave_full_disks, "disks-fill-under-load", "BalancerProgress"),
        (keep_leading_in_maintenance, "maintenance-under-load", "BalancerProgress"),
        (hold_nothing, "region-down-for-ten-minutes", "RepairHeldIffZoneDown"),
        (hold_nothing, "zone-down-for-ten-minutes", "RepairHeldIffZoneDown"),
        (hold_nothing, "zone-held-by-hand", "RepairHeldIffZoneDown"),
        (take_nothing_for_down, "region-down-for-ten-minutes", "RepairHeldIffZoneDown"),
        (take_nothing_for_down, "zone-down-for-ten-minutes", "RepairHeldIffZoneDown"),
        (never_end_an_outage, "region-down-for-ten-minutes", "BalancerProgress"),
        (never_end_an_outage, "zone-down-for-ten-minutes", "BalancerProgress"),
    ],
)
def test_a_planted_mistake_is_found(
    plant: Callable[[pytest.MonkeyPatch], None],
    scenario: str,
    promise: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch)
    violation = run(scenario).violation
    assert violation is not None and violation.startswith(promise)


@pytest.mark.simulation
@pytest.mark.parametrize("where", ["region", "zone"])
def test_bytes_that_are_copied_for_what_is_down_are_seen(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing is held, and no promise stops the run before anything is copied."""
    hold_nothing(monkeypatch)
    monkeypatch.setattr(RepairHeldIffZoneDown, "on_balancer_moved", lambda self, fact: None)
    assert run(f"{where}-down-for-ten-minutes").tally.copied_bytes > 0


@pytest.mark.simulation
def test_moves_for_a_broker_that_flaps_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    take_the_silent_for_lost(monkeypatch)
    assert run("flapping-broker").tally.balance_count > 0


# ---- the invariant itself ----------------------------------------------------------------------


def known(
    version: int, *, is_right: bool, is_moving: bool = False, policy: str = "one"
) -> PlacementKnown:
    replicas = (BrokerId(1), BrokerId(version))
    return PlacementKnown(GroupId(1), version, replicas, is_moving, is_right, (policy, ""))


def judge(*facts: PlacementKnown) -> None:
    invariant = PlacementHolds()
    for fact in facts:
        invariant.on_placement_known(fact)


def test_what_was_right_at_rest_stays_right_until_the_question_changes() -> None:
    judge(known(1, is_right=False), known(2, is_right=False))
    judge(known(1, is_right=True), known(2, is_right=False, policy="two"))
    judge(known(1, is_right=True, is_moving=True), known(2, is_right=False))
    judge(known(3, is_right=True), known(2, is_right=False))  # Told late.
    with pytest.raises(InvariantError, match="PlacementHolds"):
        judge(
            known(1, is_right=True),
            known(2, is_right=True, is_moving=True),
            known(3, is_right=False),
        )
