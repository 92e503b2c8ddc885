"""Results in words and numbers for people: the same in the terminal and in the report.

Why:    0.99998 says little; "10 minutes a year" says what it means."""

import math

from strandline.pipeline.plan.assumptions import HOURS_A_YEAR
from strandline.pipeline.plan.estimates import Estimate
from strandline.pipeline.plan.results import Outlook, Results

MINUTES_AN_HOUR = 60.0
NINES_MAX = 9.0


def format_span(hours: float) -> str:
    """ "3.2 h", "4.1 min", "2.0 s"."""
    if hours >= 1:
        return f"{hours:,.1f} h"
    minutes = hours * MINUTES_AN_HOUR
    return f"{minutes:.1f} min" if minutes >= 1 else f"{minutes * 60:.1f} s"


def format_hours(found: Estimate) -> str:
    """Hours a year with their interval."""
    if not found.is_seen:
        return f"none seen; below {format_span(found.high)}"
    return f"{format_span(found.value)} ({format_span(found.low)} to {format_span(found.high)})"


def format_share(found: Estimate) -> str:
    """A share of time: "99.9987 % (99.9981 to 99.9992)"."""
    digits = 4 if found.value < 0.99999 else 6
    percent = [f"{100 * one:.{digits}f}" for one in (found.value, found.low, found.high)]
    return f"{percent[0]} % ({percent[1]} to {percent[2]})"


def format_rate(found: Estimate) -> str:
    """How often a year, of what is expected: "once in 250 years (180 to 400)"."""
    if not found.is_seen:
        return f"never one loss away; below once in {1 / found.high:,.0f} years"
    if found.value >= 1:
        return f"{found.value:,.1f} a year ({found.low:,.1f} to {found.high:,.1f})"
    seldom = "ever" if found.low <= 0 else f"{1 / found.low:,.0f}"
    text = f"once in {1 / found.value:,.0f} years ({1 / found.high:,.0f} to {seldom})"
    return text.replace("to ever)", "or longer)")


def format_money(found: Estimate, currency: str) -> str:
    """Money a year."""
    return f"{found.value:,.0f} {currency}"


def nines(share: float) -> float:
    """-log10 of the rest: 0.999 has three nines."""
    return min(NINES_MAX, -math.log10(max(1 - share, 10**-NINES_MAX)))


def unwritable_h(outlook: Outlook) -> Estimate:
    """Hours a year in which a partition takes no acks=all, for whatever reason."""
    rest = outlook.writable.complement()
    return rest.times(HOURS_A_YEAR)


def verdict(results: Results) -> str:
    """One or two sentences: the most available, and the cheapest."""
    outlooks = results.outlooks
    best = min(outlooks, key=lambda one: unwritable_h(one).value)
    cheapest = min(outlooks, key=lambda one: one.cost.value)
    said = (
        f"{best.name} loses fewest hours of writes: {format_hours(unwritable_h(best))} a year, for "
        f"{format_money(best.cost, results.currency)} a year."
    )
    if cheapest is best:
        return said + (" It is the cheapest, too." if len(outlooks) > 1 else "")
    return said + (
        f" {cheapest.name} is the cheapest: {format_money(cheapest.cost, results.currency)}, and "
        f"{format_hours(unwritable_h(cheapest))} a year without writes."
    )


def difference(outlook: Outlook, first: Outlook) -> str:
    """Against the first policy, in the same years."""
    found = outlook.fewer_stopped_h
    if found is None:
        return ""
    if found.low <= 0 <= found.high:
        return f"no clear difference to {first.name}"
    word = "more" if found.value > 0 else "fewer"
    low, high = sorted((abs(found.low), abs(found.high)))
    return (
        f"{format_span(abs(found.value))} {word} than {first.name} "
        f"({format_span(low)} to {format_span(high)})"
    )
