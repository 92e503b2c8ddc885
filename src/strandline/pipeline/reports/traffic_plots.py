"""Charts of a topic's life: lag over time, and records by region and hour.

Why:    an operator of a pipeline asks first whether it keeps up, then where and when data arrives.
How:    times are aware datetimes and shown in UTC; each function returns a `Chart`."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num

from strandline.pipeline.reports.style import HEAT_MAP, ROW_INCHES, Chart, colour_of, new_chart

HOUR = timedelta(hours=1)
HOURS_MAX = 24 * 366
"""The longest span of a chart by hour: a year."""


def lag_chart(
    lag_by_series: Mapping[str, Sequence[tuple[datetime, float]]],
    *,
    title: str = "Lag over time",
    unit: str = "records",
) -> Chart:
    """{series: [(time, lag)]}: one line each, in the order of time."""
    with new_chart(title) as chart:
        axes = chart.axes
        for position, (name, points) in enumerate(lag_by_series.items()):
            ordered = sorted(points)
            times = _numbers([time for time, _ in ordered])
            lags = [lag for _, lag in ordered]
            axes.plot(times, lags, color=colour_of(position), linewidth=1.4, label=name)
        _date_axis(axes)
        axes.set_ylim(bottom=0)
        axes.set_ylabel(unit)
        if len(lag_by_series) > 1:
            axes.legend()
        return chart


def region_hours_chart(
    records: Mapping[tuple[str, datetime], int], *, title: str = "Records by region and hour"
) -> Chart:
    """{(region, a time in the hour): records}; times in the same hour add up. Regions are rows, by
    name; an hour without records is 0. Raises ValueError for more than `HOURS_MAX` hours."""
    regions = sorted({region for region, _ in records})
    with new_chart(title, height_inches=1.6 + ROW_INCHES * max(len(regions), 1)) as chart:
        axes = chart.axes
        axes.grid(visible=False)
        if not records:
            axes.set_yticks([])
            axes.text(0.5, 0.5, "no records", ha="center", transform=axes.transAxes)
            return chart
        begin, counts = hourly(records)
        edges = range(len(counts[regions[0]]) + 1)
        times = _numbers([begin + HOUR * number for number in edges])
        mesh = axes.pcolormesh(
            times, range(len(regions) + 1), [counts[one] for one in regions], cmap=HEAT_MAP, vmin=0
        )
        axes.set_yticks([row + 0.5 for row in range(len(regions))], regions)
        axes.invert_yaxis()
        _date_axis(axes)
        chart.figure.colorbar(mesh, ax=axes, label="records an hour")
        return chart


def hourly(
    records: Mapping[tuple[str, datetime], int],
) -> tuple[datetime, dict[str, list[int]]]:
    """(the first hour, {region: records of each hour from the first to the last}), of at least one
    entry. Raises ValueError for more than `HOURS_MAX` hours."""
    times = [_hour(time) for _, time in records]
    begin = min(times)
    hours = (max(times) - begin) // HOUR + 1
    if hours > HOURS_MAX:
        raise ValueError(f"{hours} hours from {begin}: at most {HOURS_MAX} can be shown")
    counts: dict[str, list[int]] = {}
    for (region, time), count in records.items():
        row = counts.setdefault(region, [0] * hours)
        row[(_hour(time) - begin) // HOUR] += count
    return begin, counts


def _hour(time: datetime) -> datetime:
    return _utc(time).replace(minute=0, second=0, microsecond=0)


def _utc(time: datetime) -> datetime:
    """Raises ValueError for a time without a zone."""
    if time.tzinfo is None:
        raise ValueError(f"{time} has no time zone: use an aware datetime")
    return time.astimezone(UTC)


def _numbers(times: Sequence[datetime]) -> list[float]:
    """Times as matplotlib counts them: days since 1970."""
    found = date2num([_utc(one) for one in times])  # type: ignore[no-untyped-call]
    return [float(one) for one in found]


def _date_axis(axes: Axes) -> None:
    locator = AutoDateLocator(tz=UTC)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    formatter = ConciseDateFormatter(locator, tz=UTC)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_formatter(formatter)
