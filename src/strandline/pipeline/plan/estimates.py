"""Means over trials, each with an interval; what was never seen has an upper limit only.

Why:    a mean of rare events without its uncertainty decides wrongly.
How:    trials are independent years. The interval is the bootstrap's: the trials are drawn again
        `RESAMPLES` times, and 95 % of the means lie within it. All estimates of a plan use the same
        resamples, so that the difference of two policies is that of paired years. If no trial has
        the event, the true rate is below `-ln(0.05) / trials` a year, with 95 % confidence.
Source: Efron, "Bootstrap methods" (1979); Hanley and Lippman-Hand, "If nothing goes wrong, is
        everything all right?" (1983)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
RESAMPLES = 1_000
_SEED = 53


@dataclass(frozen=True, slots=True)
class Estimate:
    """`low` <= `value` <= `high`. `is_seen`: whether any trial had it; else `value` is 0 and `high`
    the upper limit."""

    value: float
    low: float
    high: float
    is_seen: bool = True

    def times(self, factor: float) -> "Estimate":
        """In another unit; `factor` is positive."""
        return Estimate(
            self.value * factor, self.low * factor, self.high * factor, is_seen=self.is_seen
        )

    def plus(self, amount: float) -> "Estimate":
        """Moved by something that is certain."""
        return Estimate(
            self.value + amount, self.low + amount, self.high + amount, is_seen=self.is_seen
        )

    def widened(self, amount: float) -> "Estimate":
        """With a limit that is higher by something that was never seen."""
        return Estimate(self.value, self.low, self.high + amount, is_seen=self.is_seen)

    def complement(self) -> "Estimate":
        """1 minus it."""
        return Estimate(1 - self.value, 1 - self.high, 1 - self.low, is_seen=self.is_seen)


class Estimates:
    """Of so many trials. A column has one number for each of them, in the order of trials."""

    def __init__(self, trials: int) -> None:
        assert trials > 0
        self._trials = trials
        rng = np.random.Generator(np.random.PCG64(_SEED))
        chosen = rng.multinomial(trials, np.full(trials, 1 / trials), RESAMPLES)
        self._weights: NDArray[np.float64] = chosen / trials

    def mean(self, column: Sequence[float] | NDArray[np.float64]) -> Estimate:
        """The mean, with its interval; of events or hours, which are never negative."""
        values = np.asarray(column, dtype=np.float64)
        if not values.any():
            return Estimate(0.0, 0.0, self.limit, is_seen=False)
        return self._estimate(values)

    def difference(self, column: NDArray[np.float64], other: NDArray[np.float64]) -> Estimate:
        """Mean of `column` minus mean of `other`, of the same trials."""
        return self._estimate(np.asarray(column) - np.asarray(other))

    @property
    def limit(self) -> float:
        """The upper limit of the rate of an event that no trial had."""
        return -math.log(1 - CONFIDENCE) / self._trials

    def _estimate(self, values: NDArray[np.float64]) -> Estimate:
        assert values.shape == (self._trials,)
        means = self._weights @ values
        tail = (1 - CONFIDENCE) / 2 * 100
        low, high = np.percentile(means, [tail, 100 - tail])
        value = float(values.mean())
        return Estimate(value, min(float(low), value), max(float(high), value))
