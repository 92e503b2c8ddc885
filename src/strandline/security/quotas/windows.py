"""The rate of one quota over the last seconds, and how long its clients are throttled.

Why:    a quota allows bursts, and is kept over ten seconds.
How:    The amounts of the last WINDOW_COUNT seconds are kept in one sample a second. The time that
        they cover counts as ten seconds at least: a client that comes anew may use ten seconds'
        worth at once. S units in W seconds are over a limit T if S / W > T. The rate is T again
        after X more seconds without use:

            S / (W + X) = T      X = S / T - W

        Samples expire, so much use at one moment would soon be forgotten. Therefore a budget is
        kept, too: it grows by T each second, up to the window's worth, and what is used is taken
        from it. Throttling lasts until it is not below zero, even if each answer throttles for a
        bounded time only.
Owns:   the samples and the budget of one quota.
Source: Kafka 4.3's Rate, SampledStat and QuotaUtils.throttleTime; KIP-13; the generic cell rate
        algorithm (ITU-T I.371) for the budget."""

from collections import deque
from math import inf

WINDOW_MS = 1_000
"""`quota.window.size.seconds`."""
WINDOW_COUNT = 11
"""`quota.window.num`."""
BURST_MS = WINDOW_COUNT * WINDOW_MS
"""The use of so much time may come at once."""


class Usage:
    """What the clients of one quota use. Times are monotonic."""

    __slots__ = (
        "_budget_ms",
        "_limit",
        "_samples",
        "_until_ms",
        "_used",
        "throttle_ms_max",
        "used_ms",
    )

    def __init__(self, limit: float, *, throttle_ms_max: int, now_ms: int) -> None:
        """`limit`: per second."""
        assert limit > 0
        self._limit = limit
        self.throttle_ms_max = throttle_ms_max
        self.used_ms = now_ms
        """When it was last asked for."""
        # [start, last use, amount], the oldest first.
        self._samples: deque[list[float]] = deque()
        # The amount of all samples.
        self._used = 0.0
        # The budget is zero at this time; it is full BURST_MS later, and at first.
        self._budget_ms = -inf
        # Rate and budget are within the limit from this time on, if nothing more is used.
        self._until_ms = -inf

    def set_limit(self, limit: float) -> None:
        """Change the limit. What was used counts on."""
        assert limit > 0
        if limit != self._limit:
            self._limit = limit
            self._budget_ms = self._until_ms = -inf

    def note(self, amount: float, now_ms: int) -> None:
        """Something was used."""
        samples = self._samples
        if samples and now_ms - samples[-1][0] < WINDOW_MS:
            sample = samples[-1]
            sample[1] = now_ms
            sample[2] += amount
        else:
            samples.append([now_ms, now_ms, amount])
        self._used += amount
        budget_ms, full_ms = self._budget_ms, now_ms - BURST_MS
        if budget_ms < full_ms:
            budget_ms = full_ms
        self._budget_ms = budget_ms = budget_ms + amount * 1_000 / self._limit
        until_ms = now_ms + self._over_ms(now_ms)
        if until_ms < budget_ms:
            until_ms = budget_ms
        if until_ms > self._until_ms:
            self._until_ms = until_ms

    def throttle_ms(self, now_ms: int) -> int:
        """How long an answer throttles now; 0 for not at all."""
        self.used_ms = now_ms
        left_ms = self._until_ms - now_ms
        return min(max(1, round(left_ms)), self.throttle_ms_max) if left_ms > 0 else 0

    def room(self, now_ms: int) -> float:
        """How much may be used now: what keeps the rate within the limit, and one second's worth in
        any case."""
        left_ms = min(-self._over_ms(now_ms), now_ms - self._budget_ms)
        return self._limit * max(left_ms, WINDOW_MS) / 1_000

    def is_idle(self, now_ms: int) -> bool:
        """Whether nothing that was used counts any more, and no client has come of late."""
        self._expire(now_ms)
        is_paid = self._until_ms <= now_ms and not self._samples
        return is_paid and now_ms - self.used_ms >= BURST_MS

    def _over_ms(self, now_ms: int) -> float:
        """X of the formula above; negative within the limit."""
        self._expire(now_ms)
        samples = self._samples
        elapsed_ms = now_ms - samples[0][0] if samples else 0
        missing = WINDOW_COUNT - 1 - elapsed_ms // WINDOW_MS
        if missing > 0:
            elapsed_ms += missing * WINDOW_MS
        return self._used * 1_000 / self._limit - elapsed_ms

    def _expire(self, now_ms: int) -> None:
        """Forget samples that are older than the window."""
        samples = self._samples
        while samples and now_ms - samples[0][1] >= BURST_MS:
            self._used -= samples.popleft()[2]
        if not samples:
            self._used = 0.0  # Without what rounding has left.
