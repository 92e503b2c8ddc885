"""Regions are lost, voters leave, observers stand in: seeds keep every promise, and find mistakes.

More of them: `make outages SEED=1 RUNS=1000`.

Source: docs/decisions/0016, 0018, 0020 and 0025; docs/internals/simulation.md."""

import logging
from collections import Counter
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from tests.simulation.mutants import is_of_the_product
from tests.simulation.outage_mutants import OUTAGE_MUTANTS, OutageMutant
from tests.simulation.test_each_invariant import only

from strandline.base.errors import OperatorError
from strandline.model.ids import BrokerId, Epoch, GroupId, Index, Offset
from strandline.simulation.faults.kinds import ANSWER_FAULTS, LASTING_LOSS, TARGETED_FAULTS
from strandline.simulation.invariants.facts import Acknowledged, LeaderElected, VotersRecorded
from strandline.simulation.invariants.invariants import InvariantError
from strandline.simulation.invariants.promotions import PromotionKeepsRpoZero
from strandline.simulation.invariants.role_changes import KINDS
from strandline.simulation.scenarios.scenario_file import load_scenario, with_faults
from strandline.simulation.swarm import outage_swarm
from strandline.simulation.swarm.families import Swarm
from strandline.simulation.swarm.outage_additions import (
    CABLE,
    CUT_CABLES,
    LONG_OUTAGE,
    LOST_ANSWERS,
    Addition,
)
from strandline.simulation.swarm.outage_layouts import LAYOUTS, LOST_REGION_LAYOUTS
from strandline.simulation.swarm.outage_swarm import (
    ENDURANCE_ACTIVE_MS,
    FAILS_SEVERAL,
    FAMILIES,
    LOST_REGION_MS_MIN,
    Family,
    draw_outages,
    family_of,
)
from strandline.simulation.swarm.swarm import Drawn, Total, command, rotated, run_scenario

SEEDS = range(1, 41)


@pytest.mark.simulation
def test_a_small_block_of_seeds_keeps_every_promise_and_reaches_every_change_of_roles() -> None:
    total = Total()
    for seed in SEEDS:
        outcome = run_scenario(draw_outages(seed))
        assert outcome.violation is None, command(seed, swarm=Swarm.OUTAGES)
        total.add(outcome.tally)
    assert {kind for kind in KINDS if total.tally.role_counts.get(kind)} == set(KINDS)
    assert total.tally.fault_counts["spare-disk-lost"] > 0
    assert total.tally.balance_count > 0
    assert total.tally.near_count > 0 and total.tally.ruling_count > 0
    assert total.tally.declared_count > 0 and total.tally.given_up_count > 0


def families_without(addition: Addition) -> tuple[Family, ...]:
    """The families without an addition."""
    return tuple(
        replace(family, additions=tuple(one for one in family.additions if one is not addition))
        for family in FAMILIES
    )


def test_the_shares_of_the_families_sum_to_one() -> None:
    assert sum(family.share for family in FAMILIES) == pytest.approx(1)
    assert len({family.draws_as for family in FAMILIES}) == len(FAMILIES)
    additions = {one.name: one for family in FAMILIES for one in family.additions}
    assert len({one.draws_as for one in additions.values()}) == len(additions)
    assert all(0 < one.share < 1 for one in additions.values())


def test_seeds_are_drawn_in_the_shares_of_the_table() -> None:
    seeds = 20_000
    counts = Counter(family_of(seed).name for seed in range(1, seeds + 1))
    for family in FAMILIES:
        assert counts[family.name] == pytest.approx(seeds * family.share, rel=0.15)


def test_every_layout_policy_and_placement_is_drawn() -> None:
    drawn = [draw_outages(seed) for seed in range(1, 400)]
    assert {one.regions for one in drawn} == {
        one.regions for one in (*LAYOUTS, *LOST_REGION_LAYOUTS)
    }
    plans = [plan for one in drawn for plan in one.groups]
    assert {plan.promotion for plan in plans} == {
        "",
        "under-min-isr",
        "under-replicated",
        "leader-is-observer",
        "region-lost",
    }
    assert {plan.placement for plan in plans} == {"pinned", "regions", "confluent", "anywhere"}
    assert {plan.min_insync for plan in plans} == {1, 2, 3, 4}
    changes = [change for one in drawn for change in one.changes]
    assert {change.shrinks for change in changes} == {True, False, None}
    assert any(change.min_insync for change in changes)
    assert any(change.in_maintenance for change in changes)
    assert {change.ruling for change in changes} == {"", "hold", "release", "lost"}
    assert {len(change.domain) for change in changes} == {0, 1, 2}
    assert {fault.kind for one in drawn for fault in one.faults or ()} >= {
        *TARGETED_FAULTS,
        LASTING_LOSS,
    }
    assert 40 < sum(one.declares_losses for one in drawn) < 80
    assert any(one.active_ms == ENDURANCE_ACTIVE_MS for one in drawn)
    for one in drawn:
        loses_disks = any(fault.kind == "spare-disk-lost" for fault in one.faults or ())
        assert not loses_disks or all(change.shrinks is None for change in one.changes)


def test_readers_say_a_region_or_a_zone_of_it() -> None:
    drawn = [draw_outages(seed) for seed in range(1, 200)]
    racks = [(one, rack) for one in drawn for rack in one.near_racks]
    assert all(rack.split("/")[-1] in {*one.regions, *one.zones} for one, rack in racks)
    assert {rack.count("/") + rack.count("-") for _, rack in racks} == {0, 1, 2}


def test_answers_are_lost_beside_all_other_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [draw_outages(seed).faults or () for seed in range(1, 200)]
    monkeypatch.setattr(outage_swarm, "FAMILIES", families_without(LOST_ANSWERS))
    without = [draw_outages(seed).faults or () for seed in range(1, 200)]
    assert drawn != without
    others = [tuple(one for one in each if one.kind not in ANSWER_FAULTS) for each in drawn]
    assert others == without
    assert 15 < sum(one != other for one, other in zip(drawn, without, strict=True)) < 60
    lasting = [each for each in drawn if any(one.kind == LASTING_LOSS for one in each)]
    assert any(one.kind in ANSWER_FAULTS for each in lasting for one in each)


def test_cables_are_cut_beside_all_other_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [draw_outages(seed) for seed in range(1, 200)]
    monkeypatch.setattr(outage_swarm, "FAMILIES", families_without(CUT_CABLES))
    without = [draw_outages(seed).faults or () for seed in range(1, 200)]
    others = [tuple(one for one in each.faults or () if one.kind != CABLE) for each in drawn]
    assert others == without
    cut = [one for one in drawn if any(fault.kind == CABLE for fault in one.faults or ())]
    assert 8 < len(cut) < 30
    assert all(len(set(one.regions)) > 2 for one in cut)
    assert any(one.changes for one in cut)


@pytest.mark.simulation
def test_observers_stand_in_where_a_region_is_gone_for_long_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = [draw_outages(seed) for seed in range(1, 400)]
    others = tuple(family for family in FAMILIES if family.name != "lost region")
    monkeypatch.setattr(outage_swarm, "FAMILIES", others)
    losing = [one for one in drawn if one != draw_outages(one.seed)]
    assert 8 < len(losing) < 30
    assert {plan.promotion for one in losing for plan in one.groups} == {"region-lost"}
    for one in losing:
        assert min(Counter(one.regions).values()) > 1
        assert max(fault.duration_ms for fault in one.faults or ()) >= LOST_REGION_MS_MIN
        assert [fault.kind for fault in one.faults or () if fault.kind in FAILS_SEVERAL] == [
            LONG_OUTAGE
        ]
    total = Total()
    for one in losing:
        outcome = run_scenario(one)
        assert outcome.violation is None, command(one.seed, swarm=Swarm.OUTAGES)
        total.add(outcome.tally)
        if total.tally.role_counts.get("demotions"):
            break
    assert total.tally.role_counts["promotions"] > 0
    assert total.tally.role_counts["demotions"] > 0


@pytest.mark.simulation
def test_what_is_placed_against_its_policy_for_a_region_that_is_released_is_undone() -> None:
    seed = next(seed for seed in count(1) if draw_outages(seed).cluster_configs)
    outcome = run_scenario(draw_outages(seed), log_level=logging.INFO)
    assert outcome.violation is None
    moves = [line for line in outcome.trace if " moves to brokers " in line]
    reasons = [line.rpartition(": ")[2] for line in moves]
    assert reasons.count("best-effort") == reasons.count("policy-broken") > 0


def test_a_seed_is_one_history() -> None:
    first, second = (run_scenario(draw_outages(3)) for _ in range(2))
    assert first.digest == second.digest


def test_the_share_of_a_commit_is_the_same_for_everybody() -> None:
    assert rotated("0123abc") == rotated("0123abc") != rotated("0123abd")
    drawn = Drawn(range(5, 8), Swarm.OUTAGES)
    assert [one.seed for one in drawn] == [5, 6, 7]
    assert [one.seed for one in drawn[1:]] == [6, 7]
    assert command(5, swarm=Swarm.OUTAGES).endswith("--swarm outages --seed 5")


def test_a_file_says_the_faults_of_such_a_seed_and_nothing_else(tmp_path: Path) -> None:
    """What --shrink writes."""
    drawn = draw_outages(7)
    assert drawn.faults
    path = tmp_path / "shrunk.toml"
    path.write_text(with_faults('seed = 7\nswarm = "outages"', drawn.faults[:1]))
    assert load_scenario(path) == replace(drawn, faults=drawn.faults[:1])
    path.write_text('seed = 7\nswarm = "outages"\nactive_ms = 5')
    with pytest.raises(OperatorError, match="only with a seed and faults"):
        load_scenario(path)


# ---- planted mistakes --------------------------------------------------------------------------


def name_of(mutant: OutageMutant) -> str:
    return f"{mutant.plant.__name__}-{mutant.promise}"


@pytest.mark.simulation
@pytest.mark.parametrize("mutant", OUTAGE_MUTANTS, ids=name_of)
def test_a_planted_mistake_is_found(mutant: OutageMutant, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its promise alone, where one is named."""
    if mutant.promise:
        only(mutant.promise, monkeypatch)
    mutant.plant(monkeypatch)
    for seed in mutant.seeds():
        violation = mutant.violation(seed)
        if is_of_the_product(violation) and str(violation).startswith(mutant.promise):
            return
    pytest.fail("no seed finds it")


@pytest.mark.simulation
@pytest.mark.parametrize("mutant", OUTAGE_MUTANTS, ids=name_of)
def test_without_the_mistake_the_same_run_keeps_every_promise(mutant: OutageMutant) -> None:
    assert mutant.violation(mutant.seed) is None


# ---- the invariant itself ----------------------------------------------------------------------

GROUP = GroupId(1)


def recorded(version: int, *possible: tuple[int, ...], leader: int | None = None) -> VotersRecorded:
    return VotersRecorded(
        group=GROUP,
        what="appointed" if leader else "granted",
        state_version=version,
        grant=1,
        possible=tuple(tuple(map(BrokerId, one)) for one in possible),
        own=(BrokerId(1), BrokerId(2)),
        leader=None if leader is None else BrokerId(leader),
    )


def elected(broker: int, epoch: int, end: int) -> LeaderElected:
    at = Index(0)
    one = LeaderElected(BrokerId(broker), GROUP, Epoch(epoch), at, at, lambda _: Epoch(1))
    return replace(one, end_offset=Offset(end))


def acknowledged(base: int, count: int) -> Acknowledged:
    return Acknowledged(
        group=GROUP,
        producer="p",
        is_idempotent=False,
        acks=-1,
        base_offset=Offset(base),
        values=tuple(b"%d" % (base + at) for at in range(count)),
    )


def test_once_an_observer_may_vote_whoever_leads_has_what_was_acknowledged() -> None:
    one = PromotionKeepsRpoZero()
    one.on_voters_recorded(recorded(1, (1,), (1, 3)))
    one.on_leader_elected(elected(1, 1, 0))
    one.on_acknowledged(acknowledged(0, 4))
    one.on_leader_elected(elected(3, 2, 4))
    one.on_leader_elected(elected(2, 1, 0))  # Late: what came later was not known then.
    with pytest.raises(InvariantError, match="records up to 3; those up to 4 were acknowledged"):
        one.on_leader_elected(elected(3, 3, 3))


def test_only_who_may_have_voted_is_appointed() -> None:
    one = PromotionKeepsRpoZero()
    one.on_voters_recorded(recorded(1, (1, 2)))
    one.on_voters_recorded(recorded(2, (1, 2), (1,), leader=1))
    one.on_voters_recorded(recorded(2, (1, 2), (3,), leader=3))  # Told by another one, again.
    with pytest.raises(InvariantError, match="appoints broker 3"):
        one.on_voters_recorded(recorded(3, (1, 2), (1,), (3,), leader=3))
