"""Intervals hold the truth about as often as they say; nothing seen is no zero."""

import math

import numpy as np

from strandline.pipeline.plan.estimates import Estimate, Estimates


def test_nothing_seen_is_an_upper_limit_and_no_zero() -> None:
    found = Estimates(100).mean(np.zeros(100))
    assert not found.is_seen and found.value == found.low == 0
    # A rate at the limit shows nothing in 100 years with 5 % probability.
    assert math.isclose(math.exp(-found.high * 100), 0.05)


def test_the_interval_holds_the_truth_in_about_95_of_100() -> None:
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(100):
        found = Estimates(40).mean(rng.poisson(3.0, 40).astype(float))
        held += found.low <= 3.0 <= found.high
    assert 86 <= held <= 99


def test_a_difference_of_paired_years_is_narrower_than_each() -> None:
    rng = np.random.default_rng(2)
    losses = rng.exponential(10.0, 200)
    one, other = losses + rng.normal(1.0, 0.1, 200), losses
    estimates = Estimates(200)
    between = estimates.difference(one, other)
    assert between.low <= 1.0 <= between.high
    alone = estimates.mean(one)
    assert (between.high - between.low) * 10 < alone.high - alone.low


def test_the_same_column_gives_the_same_interval() -> None:
    column = np.arange(50.0)
    assert Estimates(50).mean(column) == Estimates(50).mean(column)


def test_a_complement_turns_the_interval_round() -> None:
    assert Estimate(0.25, 0.125, 0.5).complement() == Estimate(0.75, 0.5, 0.875)
