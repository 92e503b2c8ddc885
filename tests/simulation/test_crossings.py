"""Each byte crosses to a region once: what the invariant says, and when it judges.

Source: design sections 1, 5 and 10; decision 0034."""

from dataclasses import replace

import pytest
from tests.simulation.plain_scenario import plain_scenario

from strandline.model.ids import BrokerId, Epoch, GroupId, Index
from strandline.simulation.faults.faults import FAULTS
from strandline.simulation.invariants import crossings
from strandline.simulation.invariants.crossings import EachByteOncePerRegion
from strandline.simulation.invariants.facts import EntriesPassed, RegionsInStep
from strandline.simulation.invariants.invariants import InvariantError
from strandline.simulation.network.settling import is_undisturbed
from strandline.simulation.scenarios.scenario import ProducerPlan
from strandline.simulation.swarm.swarm import run_scenario

GROUP = GroupId(1)
LEADER, NEAR, RELAY, BEHIND = (BrokerId(number) for number in range(1, 5))
REGIONS = {LEADER: "east", NEAR: "east", RELAY: "west", BEHIND: "west"}
LAYOUT = ("east", "east", "west", "west", "west")
TO_RELAY = EntriesPassed(LEADER, RELAY, GROUP, Epoch(1), Index(10), Index(19))


def judge(*, first_index: int = 10) -> EachByteOncePerRegion:
    invariant = EachByteOncePerRegion(REGIONS)
    invariant.on_regions_in_step(RegionsInStep(GROUP, Epoch(1), Index(first_index)))
    invariant.on_entries_passed(TO_RELAY)
    return invariant


def test_what_is_handed_on_within_a_region_does_not_cross() -> None:
    invariant = judge()
    for sender, receiver in ((RELAY, BEHIND), (LEADER, NEAR), (RELAY, BEHIND)):
        invariant.on_entries_passed(replace(TO_RELAY, sender=sender, receiver=receiver))
    invariant.on_entries_passed(replace(TO_RELAY, first_index=Index(20), last_index=Index(29)))


def test_what_crosses_again_is_found_whoever_sends_it() -> None:
    for sender, receiver in ((LEADER, BEHIND), (NEAR, BEHIND), (LEADER, RELAY)):
        with pytest.raises(InvariantError, match="which has been sent all below 20"):
            judge().on_entries_passed(replace(TO_RELAY, sender=sender, receiver=receiver))


def test_before_all_are_in_step_and_of_other_epochs_nothing_is_judged() -> None:
    judge(first_index=20).on_entries_passed(replace(TO_RELAY, receiver=BEHIND))
    judge().on_entries_passed(replace(TO_RELAY, receiver=BEHIND, epoch=Epoch(2)))
    judge().on_entries_passed(replace(TO_RELAY, receiver=BEHIND, group=GroupId(2)))


def test_it_judges_where_nothing_is_wrong() -> None:
    scenario = plain_scenario()
    assert is_undisturbed(scenario)
    small = replace(scenario.settings, inflight_bytes_max=8 * 1024)
    for disturbed in (
        replace(scenario, fault_weights=dict.fromkeys(FAULTS, 1)),
        replace(scenario, loss_ratio=0.001),
        replace(scenario, settings=small),
        replace(scenario, has_brokers=True),
    ):
        assert not is_undisturbed(disturbed)


@pytest.mark.simulation
@pytest.mark.parametrize("seed", range(1, 4))
def test_a_history_without_faults_is_judged_from_early_on(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled: list[RegionsInStep] = []
    on_regions_in_step = EachByteOncePerRegion.on_regions_in_step

    def note(self: EachByteOncePerRegion, fact: RegionsInStep) -> None:
        settled.append(fact)
        on_regions_in_step(self, fact)

    monkeypatch.setattr(crossings.EachByteOncePerRegion, "on_regions_in_step", note)
    scenario = plain_scenario(
        seed=seed,
        brokers=len(LAYOUT),
        one_way_us=30_000,
        near_one_way_us=500,
        producers=(ProducerPlan("p1", GROUP, -1, False, 10, 8_000),),
    )
    assert run_scenario(replace(scenario, regions=LAYOUT)).violation is None
    (fact,) = settled
    assert fact.first_index < 300
