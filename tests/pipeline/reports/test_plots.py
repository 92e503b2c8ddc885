"""Charts show what they were given: values, limits and sums."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from matplotlib.collections import QuadMesh

from strandline.pipeline.reports.plots import Choice, Estimate, choices_chart, estimates_chart
from strandline.pipeline.reports.traffic_plots import (
    HOURS_MAX,
    hourly,
    lag_chart,
    region_hours_chart,
)

PNG = b"\x89PNG\r\n\x1a\n"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_an_estimate_is_a_point_with_its_interval_and_an_unobserved_one_an_arrow() -> None:
    chart = estimates_chart(
        [Estimate("a", 2.0, 1.0, 4.0, "two"), Estimate("b", None, 0.0, 3.0)],
        title="t",
        unit="minutes",
        is_log=True,
    )
    (point,) = [one for one in chart.axes.lines if one.get_marker() == "o"]
    assert list(point.get_xdata()) == [2.0]
    (bars,) = [one for one in chart.axes.collections if one.get_segments()]
    assert [one[0] for one in bars.get_segments()[0]] == [1.0, 4.0]
    assert [one.get_text() for one in chart.axes.get_yticklabels()] == ["a", "b"]
    assert chart.axes.get_xlabel() == "minutes" and chart.axes.get_xscale() == "log"
    assert any("two" in one.get_text() for one in chart.axes.texts)
    assert any(getattr(one, "arrow_patch", None) for one in chart.axes.texts)


def test_a_figure_is_a_png_and_the_same_each_time() -> None:
    def draw() -> bytes:
        choices = [Choice("a", 1.0, 2.0, 1.5, 2.5), Choice("b", 2.0, 3.0, 3.0, 3.0, 1.9, 2.1)]
        return choices_chart(choices, title="t", cost="EUR", benefit="nines").png()

    first = draw()
    assert first.startswith(PNG) and first == draw()


def test_a_value_of_zero_can_be_shown_on_a_logarithmic_axis() -> None:
    rows = [Estimate("a", 0.0, 0.0, 0.0), Estimate("b", 5.0, 0.0, 9.0)]
    assert estimates_chart(rows, title="t", unit="u", is_log=True).png().startswith(PNG)
    assert estimates_chart(rows[:1], title="t", unit="u", is_log=True).png().startswith(PNG)


def test_lag_is_drawn_in_the_order_of_time() -> None:
    points = [(NOON + timedelta(minutes=5), 3.0), (NOON, 7.0)]
    chart = lag_chart({"orders": points, "clicks": [(NOON, 1.0)]})
    assert list(chart.axes.lines[0].get_ydata()) == [7.0, 3.0]
    assert [one.get_text() for one in chart.axes.get_legend().get_texts()] == ["orders", "clicks"]
    assert chart.png().startswith(PNG)


def test_records_add_up_by_region_and_hour_in_utc() -> None:
    east = timezone(timedelta(hours=2))
    records = {
        ("west", NOON): 5,
        ("west", NOON + timedelta(minutes=59)): 6,
        ("east", datetime(2026, 3, 1, 16, 30, tzinfo=east)): 7,
    }
    begin, counts = hourly(records)
    assert begin == NOON
    assert counts == {"west": [11, 0, 0], "east": [0, 0, 7]}
    chart = region_hours_chart(records)
    (mesh,) = [one for one in chart.axes.collections if isinstance(one, QuadMesh)]
    assert mesh.get_array().sum() == 18
    assert [one.get_text() for one in chart.axes.get_yticklabels()] == ["east", "west"]
    assert chart.png().startswith(PNG)


def test_no_records_and_too_many_hours_are_not_drawn_as_something_else() -> None:
    assert region_hours_chart({}).axes.texts[0].get_text() == "no records"
    with pytest.raises(ValueError, match="at most"):
        hourly({("a", NOON): 1, ("a", NOON + timedelta(hours=HOURS_MAX)): 1})
    with pytest.raises(ValueError, match="no time zone"):
        hourly({("a", datetime(2026, 3, 1)): 1})


def test_choices_are_points_that_a_legend_names() -> None:
    chart = choices_chart(
        [Choice("a", 1.0, 2.0, 1.5, 2.5), Choice("b", 1.0, 2.0, 2.0, 2.0)],
        title="t",
        cost="EUR",
        benefit="nines",
    )
    points = [one for one in chart.axes.lines if one.get_marker() == "o"]
    assert [(one.get_xdata()[0], one.get_ydata()[0]) for one in points] == [(1.0, 2.0)] * 2
    (legend,) = chart.figure.legends
    assert [one.get_text() for one in legend.get_texts()] == ["a", "b"]
