"""A seed stands for a plan: the same each time, and one that can be carried out."""

from itertools import pairwise
from pathlib import Path

import pytest
from chaos.hosts import (
    ATLANTIC,
    BROKERS,
    HOSTS,
    all_brokers,
    broker_host,
    hosts_in,
    links_between,
    machine_of,
    one_way_ms,
)
from chaos.mixed_releases import MixedReleases
from chaos.network import link_state
from chaos.plan import ACTIVE_MAX, CALM_MS, Fault, Plan, draw_plan
from chaos.report import command_of
from chaos.targets import KINDS, Kind, Target

TEN_MINUTES_MS = 600_000
SEEDS = range(60)
CUT, DELAY, LOSS = Kind.CUT, Kind.DELAY, Kind.LOSS


def active_at(plan: Plan, at_ms: int) -> list[Fault]:
    return [fault for fault in plan.faults if fault.begin_ms <= at_ms < fault.end_ms]


def test_the_same_seed_gives_the_same_plan() -> None:
    assert draw_plan(7, duration_ms=TEN_MINUTES_MS) == draw_plan(7, duration_ms=TEN_MINUTES_MS)


def test_other_seeds_give_other_plans() -> None:
    plans = {draw_plan(seed, duration_ms=60_000).faults for seed in SEEDS}
    assert len(plans) == len(SEEDS)


def test_what_a_seed_does_does_not_change_with_the_version_of_this_program() -> None:
    """A seed in a report has to mean the same tomorrow."""
    first, second, *_ = draw_plan(1, duration_ms=TEN_MINUTES_MS).faults
    assert str(first) == "#1       6.8 s  for  4.0 s  cut        region west cut off"
    assert str(second) == "#2      11.3 s  for  2.9 s  kill -9    region east: brokers 1, 2"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_can_be_carried_out(seed: int) -> None:
    plan = draw_plan(seed, duration_ms=120_000)
    for fault in plan.faults:
        assert CALM_MS <= fault.begin_ms < fault.end_ms <= plan.duration_ms
        active = active_at(plan, fault.begin_ms)
        assert len(active) <= ACTIVE_MAX
        targets = [broker for one in active for broker in one.target.processes]
        assert len(targets) == len(set(targets)), "no process is stopped twice at once"
        full = [one.target.full_disk for one in active if one.target.full_disk]
        assert full in ([], [plan.small_disk])
    assert all(one.begin_ms < other.begin_ms for one, other in pairwise(plan.faults))


def test_every_kind_of_fault_comes_in_ten_minutes() -> None:
    drawn = set(draw_plan(1, duration_ms=TEN_MINUTES_MS).counts())
    assert drawn == {row.kind.value for row in KINDS}
    drawn |= set(draw_plan(1, duration_ms=TEN_MINUTES_MS, cores=2).counts())
    assert drawn == {kind.value for kind in Kind}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_for_machines_names_machines_and_can_be_carried_out(seed: int) -> None:
    plan = draw_plan(seed, duration_ms=120_000, cores=2)
    for fault in plan.faults:
        active = active_at(plan, fault.begin_ms)
        targets = [machine for one in active for machine in one.target.processes]
        assert len(targets) == len(set(targets)) and set(targets) <= {1, 2, 3, 4, 5}
        assert all(machine_of(one) in fault.target.processes for one in fault.target.brokers)
        alone = fault.kind is Kind.KILL_BROKER
        assert ("broker" in fault.target.text) == alone == bool(fault.target.brokers)
        if fault.kind is Kind.POWER_OFF:
            state = [
                link_state(broker_host(one), other, [fault])[4]
                for one in fault.target.processes
                for other in HOSTS
                if other != broker_host(one)
            ]
            assert all(state), "no packet leaves a machine without power"


def test_brokers_of_machines_have_ids_of_their_own() -> None:
    assert all_brokers(0) == (1, 2, 3, 4, 5)
    assert all_brokers(2) == (10, 11, 20, 21, 30, 31, 40, 41, 50, 51)
    assert [machine_of(one) for one in (3, 30, 31)] == [3, 3, 3]


def test_the_command_that_repeats_a_plan_names_its_seed_and_length() -> None:
    assert command_of(draw_plan(5, duration_ms=150_000)) == "make chaos SEED=5 MINUTES=2.5"
    plan = draw_plan(5, duration_ms=150_000, cores=2)
    assert command_of(plan) == "make chaos SEED=5 MINUTES=2.5 CORES=2"
    releases = MixedReleases(Path("/earlier"), frozenset({1, 4}))
    again = command_of(draw_plan(5, duration_ms=150_000), releases=releases)
    assert again == "make chaos SEED=5 MINUTES=2.5 EARLIER=/earlier"


def fault(kind: Kind, links: tuple[tuple[str, str], ...], amount: float = 0.0) -> Fault:
    return Fault(1, 0, 1, kind, Target("", links=links, amount=amount))


def test_a_one_way_cut_leaves_the_way_back() -> None:
    one, other = broker_host(1), broker_host(3)
    cut = fault(CUT, links_between((one,), (other,)))
    assert link_state(one, other, [cut])[2:] == [15.0, 0.0, True, 0.0]
    assert link_state(other, one, [cut])[2:] == [15.0, 0.0, False, 0.0]


def test_faults_on_one_link_add_up_and_end_one_by_one() -> None:
    one, other = broker_host(1), broker_host(5)
    links = links_between((one,), (other,))
    slow, slower = fault(DELAY, links, 50), fault(DELAY, links, 400)
    lossy, lossier = fault(LOSS, links, 0.01), fault(LOSS, links, 0.2)
    all_of_them = [slow, slower, lossy, lossier]
    assert link_state(one, other, all_of_them)[2:] == [490.0, 0.2, False, 0.0]
    assert link_state(one, other, [slow, lossy])[2:] == [90.0, 0.01, False, 0.0]


def test_a_profile_says_what_lies_between_regions_and_nothing_of_what_is_inside() -> None:
    east, other, south = broker_host(1), broker_host(2), broker_host(5)
    assert link_state(east, south, [], ATLANTIC)[2:] == [35.0, 0.001, False, 1.5]
    assert link_state(east, other, [], ATLANTIC)[2:] == [0.5, 0.0, False, 0.0]
    lossy = fault(LOSS, links_between((east,), (south,)), 0.2)
    assert link_state(east, south, [lossy], ATLANTIC)[3] == 0.2


def test_regions_are_as_far_apart_one_way_as_the_other() -> None:
    for one in HOSTS:
        for other in HOSTS:
            assert one_way_ms(one, other) == one_way_ms(other, one)


def test_a_region_takes_its_clients_with_it() -> None:
    assert [host.name for host in hosts_in("south")] == ["south-1", "south-clients"]
    assert len(links_between(BROKERS, BROKERS)) == 20
