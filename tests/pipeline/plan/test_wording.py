"""Numbers as people read them; what was never in danger has a limit."""

import pytest

from strandline.pipeline.plan.estimates import Estimate
from strandline.pipeline.plan.wording import (
    format_hours,
    format_rate,
    format_share,
    format_span,
    nines,
)


@pytest.mark.parametrize(
    ("hours", "text"), [(30.0, "30.0 h"), (0.5, "30.0 min"), (0.001, "3.6 s"), (0.0, "0.0 s")]
)
def test_a_span_has_the_unit_that_fits(hours: float, text: str) -> None:
    assert format_span(hours) == text


def test_rates_are_once_in_so_many_years() -> None:
    assert format_rate(Estimate(0.004, 0.002, 0.008)) == "once in 250 years (125 to 500)"
    assert format_rate(Estimate(0.004, 0.0, 0.008)) == "once in 250 years (125 or longer)"
    assert format_rate(Estimate(2.5, 2.0, 3.0)) == "2.5 a year (2.0 to 3.0)"
    limit = Estimate(0.0, 0.0, 0.05, is_seen=False)
    assert format_rate(limit) == "never one loss away; below once in 20 years"
    assert format_hours(limit) == "none seen; below 3.0 min"


def test_shares_close_to_one_keep_their_digits() -> None:
    assert format_share(Estimate(0.999, 0.998, 0.9995)) == "99.9000 % (99.8000 to 99.9500)"
    assert format_share(Estimate(0.9999998, 0.9999997, 1.0)).startswith("99.999980 %")
    assert nines(0.999) == pytest.approx(3.0) and nines(1.0) == 9.0
