"""The losses of one simulated year: when, which domain, for how long, with or without the disks.

Why:    results must depend on the seed alone, never on how trials are shared among executors.
How:    each trial has its own generator, seeded by (seed, number of the trial). Losses of a domain
        are a Poisson process; durations are log-normal. All draws are made at once, as columns.
Source: L'Ecuyer, "Random number generation with multiple streams" (2015), for a stream each."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strandline.pipeline.plan.assumptions import HOURS_A_YEAR
from strandline.pipeline.plan.domains import LossDomain


@dataclass(frozen=True, slots=True)
class Loss:
    """One loss. Times are hours since the trial began."""

    at_h: float
    domain: int
    hours: float
    destroyed: bool


def draw_losses(domains: Sequence[LossDomain], seed: int, trial: int) -> list[Loss]:
    """The losses of a year, in the order of time. The same (seed, trial) always gives the same."""
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, trial])))
    counts = rng.poisson([one.rate.per_year for one in domains])
    domain = np.repeat(np.arange(len(domains)), counts)
    rates = [one.rate for one in domains]
    at_h = rng.uniform(0.0, HOURS_A_YEAR, domain.size)
    normal = rng.standard_normal(domain.size)
    median = np.array([one.hours for one in rates])[domain]
    hours = median * np.exp(np.array([one.spread for one in rates])[domain] * normal)
    destroyed = rng.random(domain.size) < np.array([one.destroyed for one in rates])[domain]
    order = np.argsort(at_h, kind="stable")
    return [
        Loss(float(at_h[each]), int(domain[each]), float(hours[each]), bool(destroyed[each]))
        for each in order
    ]
