"""Charts of results: estimates with their intervals, and cost against benefit.

Why:    a decision compares alternatives; a point without its interval invites a wrong one.
How:    each function returns a `Chart`; `Chart.png()` is the file. A value that was never observed
        has an upper limit only: it is drawn as an arrow from that limit."""

from collections.abc import Sequence
from dataclasses import dataclass

from strandline.pipeline.reports.style import MUTED, ROW_INCHES, Chart, colour_of, new_chart


@dataclass(frozen=True, slots=True)
class Estimate:
    """One row of a chart of estimates: `low` <= `value` <= `high`, in the unit of the chart.

    `value` None: not observed; then only `high`, the upper limit, is known."""

    name: str
    value: float | None
    low: float
    high: float
    note: str = ""
    """Shown at the end of the row."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One point of a chart of cost against benefit, with the intervals of both."""

    name: str
    cost: float
    benefit: float
    benefit_low: float
    benefit_high: float
    cost_low: float | None = None
    """None: the cost has no interval."""
    cost_high: float | None = None


def estimates_chart(
    rows: Sequence[Estimate], *, title: str, unit: str, is_log: bool = False
) -> Chart:
    """Rows from top to bottom, each a point with its interval. `is_log`: on a logarithmic axis,
    where values of 0 or less cannot be shown and count as the least positive one."""
    height = 1.1 + ROW_INCHES * max(len(rows), 1)
    with new_chart(title, height_inches=height) as chart:
        axes = chart.axes
        shown = [one for row in rows for one in (row.low, row.value or 0.0, row.high) if one > 0]
        least = min(shown, default=1.0) if is_log else 0.0
        if is_log:
            axes.set_xscale("log")
        for position, row in enumerate(rows):
            colour = colour_of(position)
            if row.value is None:
                axes.annotate(
                    "",
                    xy=(max(row.high * 0.3, least * 0.3 if is_log else 0.0), position),
                    xytext=(max(row.high, least), position),
                    arrowprops={"arrowstyle": "->", "color": colour},
                )
                axes.plot([max(row.high, least)], [position], marker="|", color=colour)
                end = max(row.high, least)
            else:
                low, high = max(row.low, least), max(row.high, least)
                middle = min(max(row.value, low), high)
                axes.errorbar(
                    [middle], [position], xerr=[[middle - low], [high - middle]],
                    fmt="o", color=colour, capsize=3, markersize=5,
                )  # fmt: skip
                end = high
            if row.note:
                axes.annotate(
                    row.note, (end, position), xytext=(6, 0), textcoords="offset points",
                    va="center", fontsize=8, color=MUTED,
                )  # fmt: skip
        axes.set_yticks(range(len(rows)), [row.name for row in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.margins(x=0.18)
        axes.set_xlabel(unit)
        return chart


def choices_chart(choices: Sequence[Choice], *, title: str, cost: str, benefit: str) -> Chart:
    """Each choice as a named point: cost to the right, benefit upwards. `cost` and `benefit` label
    the axes."""
    with new_chart(title, height_inches=3.6) as chart:
        for position, one in enumerate(choices):
            colour = colour_of(position)
            chart.axes.errorbar(
                [one.cost],
                [one.benefit],
                xerr=_around(one.cost, one.cost_low, one.cost_high),
                yerr=_around(one.benefit, one.benefit_low, one.benefit_high),
                fmt="o",
                color=colour,
                capsize=3,
                markersize=6,
                label=one.name,
            )
        chart.axes.margins(x=0.12, y=0.15)
        if choices:
            chart.figure.legend(loc="outside right upper")
        chart.axes.set_xlabel(cost)
        chart.axes.set_ylabel(benefit)
        return chart


def _around(value: float, low: float | None, high: float | None) -> list[list[float]] | None:
    """The lengths of the two halves of an interval, never negative; None without one."""
    if low is None or high is None:
        return None
    return [[max(0.0, value - low)], [max(0.0, high - value)]]
