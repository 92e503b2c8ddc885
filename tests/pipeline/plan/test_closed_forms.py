"""The simulation against what can be computed by hand."""

import math

import msgspec
import numpy as np
import pytest
from tests.pipeline.plan.described import AT_ONCE, NEVER, NO_LOSSES, cluster_of, plan_of

from strandline.pipeline.plan.assumptions import HOURS_A_YEAR, Assumptions, Losses, LossRate
from strandline.pipeline.plan.estimates import Estimates
from strandline.pipeline.plan.results import results_of
from strandline.pipeline.plan.runs import run_here
from strandline.pipeline.plan.tally import Tally
from strandline.pipeline.plan.trials import TrialRow


def column(rows: list[TrialRow], name: str, alternative: int = 0) -> "np.ndarray":
    place = Tally.names().index(name)
    return np.array([row.tallies[alternative][place] for row in rows])


def only(**rates: LossRate) -> Assumptions:
    losses = msgspec.structs.replace(NO_LOSSES, **rates)
    return Assumptions(losses=losses, recovery=AT_ONCE)


def test_a_quorum_of_three_independent_brokers_is_binomial() -> None:
    """Losses of a broker come as a Poisson process and last 20 h each, overlapping or not: a broker
    is up with probability exp(-rate x duration)."""
    rate, hours = 60.0, 20.0
    plan = plan_of(cluster_of(3), ["rf3"], only(broker=LossRate(rate, hours, 0.0)))
    rows = run_here(plan, 40)
    up = math.exp(-rate * hours / HOURS_A_YEAR)
    expected_h = HOURS_A_YEAR * (1 - 3 * up**2 * (1 - up) - up**3)
    found = Estimates(len(rows)).mean(column(rows, "stopped_h"))
    assert found.low <= expected_h <= found.high, (found, expected_h)
    assert found.high < 1.2 * found.low


def test_the_stops_that_are_expected_are_those_that_come() -> None:
    plan = plan_of(cluster_of(3), ["rf3"], only(broker=LossRate(60.0, 20.0, 0.0)))
    rows = run_here(plan, 60)
    estimates = Estimates(len(rows))
    expected, counted = column(rows, "stops_expected"), column(rows, "stops")
    between = estimates.difference(expected, counted)
    assert between.low <= 0 <= between.high, between
    assert counted.sum() > 500
    # That is what they are for: the same mean, less noise.
    assert expected.std() < counted.std()


def test_hours_of_stops_that_were_drawn_are_those_that_come() -> None:
    """With durations that vary: a stop ends with the first of the two brokers that returns."""
    plan = plan_of(cluster_of(3), ["rf3"], only(broker=LossRate(8.0, 10.0, 0.7)), partitions=1)
    rows = run_here(plan, 300)
    counted, drawn = column(rows, "stopped_h"), column(rows, "stopped_sampled_h")
    between = Estimates(len(rows)).difference(drawn, counted)
    assert counted.mean() > 0.5
    assert between.low <= 0 <= between.high, (drawn.mean(), counted.mean())
    assert drawn.std() < counted.std()


def test_hours_of_a_region_that_is_never_lost_in_the_sample_are_known() -> None:
    """Once in 1,000 years for 10 hours: 20 years show none, and the hours are known exactly."""
    plan = plan_of(cluster_of(1, brokers=3), ["rf3"], only(region=LossRate(0.001, 10.0, 0.0)))
    rows = run_here(plan, 20)
    (found,) = results_of(plan, rows).outlooks
    assert column(rows, "stopped_h").sum() == 0
    assert found.stopped_h.value == pytest.approx(0.001 * 10.0, rel=0.01)
    assert found.readable.value == pytest.approx(1 - 0.01 / HOURS_A_YEAR)


def test_the_lost_records_that_are_expected_are_those_that_come() -> None:
    rates = only(broker=LossRate(40.0, 40.0, 0.0, destroyed=1.0))
    rates = msgspec.structs.replace(
        rates, recovery=msgspec.structs.replace(AT_ONCE, declare_hours=0.0)
    )
    rows = run_here(plan_of(cluster_of(3), ["rf3"], rates, partitions=1), 60)
    estimates = Estimates(len(rows))
    counted, expected = column(rows, "losses_topic"), column(rows, "losses_topic_expected")
    between = estimates.difference(expected, counted)
    assert counted.sum() > 100
    assert between.low <= 0 <= between.high, (between, counted.mean(), expected.mean())


def test_one_region_is_as_available_as_the_region() -> None:
    plan = plan_of(cluster_of(1, brokers=3), ["rf3"], only(region=LossRate(20.0, 10.0, 0.0)))
    rows = run_here(plan, 40)
    expected_h = HOURS_A_YEAR * (1 - math.exp(-20.0 * 10.0 / HOURS_A_YEAR))
    found = Estimates(len(rows)).mean(column(rows, "stopped_h"))
    assert found.low <= expected_h <= found.high


def test_more_regions_are_never_less_available_under_losses_of_regions() -> None:
    """The same losses for all: so it holds in each single year."""
    rates = only(region=LossRate(8.0, 30.0))
    plan = plan_of(cluster_of(3, brokers=3), ["3", "2+1", "1+1+1"], rates)
    rows = run_here(plan, 30)
    one, two, three = (column(rows, "stopped_h", number) for number in range(3))
    assert (one >= two - 1e-9).all() and (two >= three - 1e-9).all()
    assert one.sum() == pytest.approx(two.sum())
    assert two.sum() > three.sum() > 0


def test_a_policy_that_survives_every_loss_there_is_has_a_limit_and_no_estimate() -> None:
    plan = plan_of(cluster_of(3), ["rf3"], only(region=LossRate(0.001, 3.0, 0.0)))
    rows = run_here(plan, 20)
    (found,) = results_of(plan, rows).outlooks
    assert not found.stopped_h.is_seen and found.stopped_h.value == 0
    assert found.stopped_h.high == pytest.approx(3.0 * -math.log(0.05) / 20)
    assert found.writable.high == 1 and found.writable.low < 1


def test_the_rate_of_a_rare_loss_is_known_although_none_was_seen() -> None:
    """Two disks within a day of each other, by hand: once in 24,000 years."""
    rates = only(broker=LossRate(0.5, 24.0, 0.0, destroyed=0.1))
    plan = plan_of(cluster_of(3), ["rf3"], rates, partitions=1)
    (found,) = results_of(plan, run_here(plan, 300)).outlooks
    disks_a_year = 0.5 * 0.1
    expected = 3 * disks_a_year * 2 * disks_a_year * 24 / HOURS_A_YEAR
    assert found.losses_seen == 0
    assert found.losses.low <= expected <= found.losses.high < 2 * expected


def test_each_trial_has_losses_of_its_own() -> None:
    plan = plan_of(cluster_of(3), ["rf3"], Assumptions(losses=Losses(zone=NEVER)))
    counts = [row.losses for row in run_here(plan, 20)]
    assert len(set(counts)) > 3
