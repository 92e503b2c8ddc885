"""The report of a plan: one HTML page with tables and plots, and each plot as a PNG.

Source: `pipeline.reports`."""

from collections.abc import Sequence

from strandline.pipeline.plan.assumptions import Assumptions
from strandline.pipeline.plan.results import Outlook, Results
from strandline.pipeline.plan.wording import (
    MINUTES_AN_HOUR,
    difference,
    format_hours,
    format_money,
    format_rate,
    format_share,
    nines,
    unwritable_h,
    verdict,
)
from strandline.pipeline.reports.page import Figure, Section, Table, render_page
from strandline.pipeline.reports.plots import (
    Choice,
    Estimate,
    choices_chart,
    estimates_chart,
)
from strandline.pipeline.reports.style import Chart

_CAPTION = "Points are estimates, bars their 95 % intervals."


def availability_chart(results: Results) -> Chart:
    """Minutes a year without acks=all, by policy."""
    rows = []
    for one in results.outlooks:
        found = unwritable_h(one).times(MINUTES_AN_HOUR)
        note = "" if one.stopped_h.is_seen else "no stop seen"
        rows.append(Estimate(one.name, found.value, found.low, found.high, note))
    title = "Time without writes (acks=all), by policy"
    return estimates_chart(rows, title=title, unit="minutes a year, of a partition", is_log=True)


def losses_chart(results: Results) -> Chart:
    """Losses of acknowledged records a year, by policy."""
    rows = []
    for one in results.outlooks:
        found = one.losses
        value = found.value if found.is_seen else None
        rows.append(Estimate(one.name, value, found.low, found.high))
    title = "Losses of acknowledged records, by policy"
    return estimates_chart(rows, title=title, unit="losses a year, of the topic", is_log=True)


def cost_chart(results: Results) -> Chart:
    """Cost against survival."""
    return choices_chart(
        [
            Choice(
                name=one.name,
                cost=one.cost.value,
                benefit=nines(one.writable.value),
                benefit_low=nines(one.writable.low),
                benefit_high=nines(one.writable.high),
                cost_low=one.cost.low,
                cost_high=one.cost.high,
            )
            for one in results.outlooks
        ],
        title="Cost against survival",
        cost=f"{results.currency} a year",
        benefit="nines of availability for writes",
    )


def report_page(results: Results, assumptions: Assumptions) -> str:
    """The page as text."""
    figures = [
        Figure(availability_chart(results).png(), f"Time without writes. {_CAPTION}"),
        Figure(cost_chart(results).png(), f"Cost against survival. {_CAPTION}"),
        Figure(losses_chart(results).png(), f"Losses of acknowledged records. {_CAPTION}"),
    ]
    return render_page(
        "What a placement policy is worth",
        [
            Section("Policies compared", tables=[_overview(results)], figures=figures),
            Section(
                "Bytes and money",
                ["Bytes cross regions in a year; a GB is 10⁹ bytes."],
                [_bytes(results)],
            ),
            Section(
                "What one loss does",
                ["The worst that each class of loss does, as the cluster itself foretells it."],
                [_single_losses(one) for one in results.outlooks],
            ),
            Section("What this assumes", tables=_assumed(assumptions)),
        ],
        summary=(
            f"{results.losses:,} simulated losses in {results.trials:,} years of a cluster of "
            f"{results.brokers} brokers in {', '.join(results.regions)}. Seed {results.seed}."
        ),
        verdict=verdict(results),
    )


def _overview(results: Results) -> Table:
    first = results.outlooks[0]
    return Table(
        [
            "policy", "replicas", "available for writes", "without writes, a year",
            "against the first", "available for reads", "a partition stops",
            "acknowledged records lost", "cost a year",
        ],
        [
            [
                one.name,
                f"{one.voters} + {one.observers}" if one.observers else str(one.voters),
                format_share(one.writable),
                format_hours(unwritable_h(one)),
                difference(one, first),
                format_share(one.readable),
                format_rate(one.stops),
                format_rate(one.losses),
                format_money(one.cost, results.currency),
            ]
            for one in results.outlooks
        ],
    )  # fmt: skip


def _bytes(results: Results) -> Table:
    return Table(
        [
            "policy", "produce, GB", "replication, GB", "reads, GB", "repairs, GB", "stored, GB",
            f"traffic, {results.currency}", f"repairs, {results.currency}",
            f"disks, {results.currency}",
        ],
        [
            [
                one.name,
                round(one.traffic.produce_cross_region_gb),
                round(one.traffic.replication_cross_region_gb),
                round(one.traffic.read_cross_region_gb),
                round(one.repair_cross_region_gb.value),
                round(one.traffic.stored_gb),
                round(one.traffic.cost - one.traffic.storage_cost),
                round(one.repair_cost.value),
                round(one.traffic.storage_cost),
            ]
            for one in results.outlooks
        ],
    )  # fmt: skip


def _single_losses(outlook: Outlook) -> Table:
    return Table(
        ["loss", "writes go on", "records are kept", "course"],
        [
            [
                f"{one.loss}, cut off" if one.is_cut and not one.is_link else one.loss,
                "yes" if one.acts_alone else "no",
                "yes" if one.keeps_data else "no",
                str(one.course),
            ]
            for one in outlook.single_losses
        ],
        caption=f"{outlook.name}: {outlook.policy}",
    )


def _assumed(assumptions: Assumptions) -> Sequence[Table]:
    rates: list[list[str | int | float]] = [
        [
            level,
            rate.per_year,
            rate.hours,
            rate.spread,
            f"{100 * rate.destroyed:g} %",
        ]
        for level, rate in assumptions.losses.by_level().items()
    ]
    traffic, recovery = assumptions.traffic, assumptions.recovery
    others: list[list[str | int | float]] = [
        ["produced to the topic, MB/s", traffic.produced_mb_per_s],
        ["retained, hours", traffic.retained_hours],
        ["an election, s", recovery.election_s],
        ["an appointment by the controller, s", recovery.arbitration_s],
        ["the promotion of an observer, s", recovery.promotion_s],
        ["until an operator declares a loss, hours", recovery.declare_hours],
        ["copies to or from a broker, MB/s", recovery.copy_mb_per_s],
        ["data of one broker, GB", recovery.broker_gb],
    ]
    return [
        Table(["lost", "times a year, each", "hours, median", "spread", "with the disks"], rates),
        Table(["assumption", "value"], others),
    ]
