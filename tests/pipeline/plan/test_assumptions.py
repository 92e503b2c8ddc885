"""The file of assumptions: every key is checked, and what is missing has a default."""

import math

import numpy as np
import pytest

from strandline.base.errors import OperatorError
from strandline.pipeline.plan.assumptions import (
    HOURS_A_YEAR,
    Assumptions,
    LossRate,
    decode_assumptions,
)
from strandline.pipeline.plan.domains import LossDomain, losses_a_year
from strandline.pipeline.plan.losses import draw_losses

WHOLE = """
controllers = [1, 2, 3]
[losses.region]
per_year = 0.2
hours = 6
spread = 0.5
destroyed = 0.05
[recovery]
election_s = 2
[traffic]
produced_mb_per_s = 50
producers = {east = 2, west = 1}
[prices]
currency = "EUR"
links = [{from = "east", to = "west", per_gb = 0.05}]
[cluster]
"broker.lost.after.ms" = 600000
"""


def test_a_whole_file_is_read() -> None:
    found = decode_assumptions(WHOLE, source="a.toml")
    assert found.losses.region == LossRate(0.2, 6.0, 0.5, 0.05)
    assert found.losses.broker == Assumptions().losses.broker
    assert found.config().broker_lost_after_ms == 600_000
    assert float(found.prices.transfer().links[0].per_gb) == 0.05
    assert found.controllers == (1, 2, 3)


def test_an_empty_file_is_the_defaults() -> None:
    assert decode_assumptions("", source="a.toml") == Assumptions()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("losses = ", "not TOML"),
        ("[losses.regoin]\nper_year = 1\nhours = 1", "unknown field `regoin`"),
        ("[losses.region]\nper_year = -1\nhours = 1", "per_year"),
        ("[losses.region]\nper_year = 1\nhours = 0", "hours"),
        ("[losses.region]\nper_year = 1", "hours"),
        ("[losses.region]\nper_year = nan\nhours = 1", "per_year"),
        ("[losses.zone]\nper_year = 1\nhours = 1\ndestroyed = 2", "destroyed"),
        ("[traffic]\nproducers = {east = 0}", "all weights are 0"),
        ("[recovery]\ncopy_mb_per_s = 0", "copy_mb_per_s"),
        ("[cluster]\n'broker.lost.after' = 1", "broker.lost.after"),
        ("[cluster]\n'broker.lost.after.ms' = 1", "broker.lost.after.ms"),
        ("prices = 3", "prices"),
        ("#" * 200_001, "write at most 200000"),
        (
            "".join(
                f"[losses.{level}]\nper_year = 0\nhours = 1\n"
                for level in ("region", "zone", "broker")
            ),
            "nothing is ever lost",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(text: str, says: str) -> None:
    with pytest.raises(OperatorError) as refused:
        decode_assumptions(text, source="a.toml")
    told = str(refused.value)
    assert told.startswith("a.toml: ") and says in told and "\n" not in told


def test_losses_come_as_often_and_last_as_long_as_the_file_says() -> None:
    domains = [
        LossDomain("region", "a", 1, LossRate(3.0, 2.0, 0.8, 0.25)),
        LossDomain("region", "b", 2, LossRate(6.0, 4.0, 0.0, 0.0)),
    ]
    drawn = [one for trial in range(400) for one in draw_losses(domains, 1, trial)]
    first = [one for one in drawn if one.domain == 0]
    assert abs(len(first) / 400 - 3.0) < 4 * math.sqrt(3.0 / 400)
    assert abs(len(drawn) / 400 - losses_a_year(tuple(domains))) < 4 * math.sqrt(9.0 / 400)
    hours = np.array([one.hours for one in first])
    assert abs(np.median(hours) - 2.0) < 0.3
    assert abs(hours.mean() - domains[0].rate.mean_hours) < 0.4
    assert abs(np.mean([one.destroyed for one in first]) - 0.25) < 0.06
    assert {one.hours for one in drawn if one.domain == 1} == {4.0}
    assert not any(one.destroyed for one in drawn if one.domain == 1)


def test_losses_are_in_the_order_of_time_and_by_seed() -> None:
    domains = [LossDomain("broker", "1", 1, LossRate(50.0, 1.0))]
    one = draw_losses(domains, 1, 2)
    times = [loss.at_h for loss in one]
    assert times == sorted(times) and times[0] >= 0 and times[-1] < HOURS_A_YEAR
    assert one == draw_losses(domains, 1, 2)
    assert one != draw_losses(domains, 2, 1) and one != draw_losses(domains, 1, 3)
