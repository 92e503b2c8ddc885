"""The tokens of one quota of changes, and how long its clients wait for more.

Why:    one change of topics may be large: its tokens are taken before it is done, not averaged.
How:    tokens come at a rate, up to BURST_MS of it. A change is allowed while there is no debt, and
        takes as many tokens as it needs, so a large one may leave a debt.
Owns:   the tokens of one quota.
Source: KIP-599; Kafka 4.3's TokenBucket."""

BURST_MS = 11_000
"""`controller.quota.window.num` by `controller.quota.window.size.seconds`."""


class TokenBudget:
    """See the module. Times are monotonic."""

    __slots__ = ("_limit", "_seen_ms", "_tokens", "used_ms")

    def __init__(self, limit: float, *, now_ms: int) -> None:
        """`limit`: tokens per second."""
        assert limit > 0
        self._limit = limit
        self._tokens = limit * BURST_MS / 1_000
        self._seen_ms = self.used_ms = now_ms

    def set_limit(self, limit: float, now_ms: int) -> None:
        """Change the limit. A debt stays."""
        self._fill(now_ms)
        self._limit = limit
        self._tokens = min(self._tokens, limit * BURST_MS / 1_000)

    def spend(self, count: float, now_ms: int) -> None:
        """Take tokens, whether they are there or not."""
        self._fill(now_ms)
        self.used_ms = now_ms
        self._tokens -= count

    def wait_ms(self, now_ms: int) -> int:
        """How long until there is no debt; 0 if there is none."""
        self._fill(now_ms)
        return 0 if self._tokens >= 0 else max(1, round(-self._tokens * 1_000 / self._limit))

    def is_idle(self, now_ms: int) -> bool:
        """Whether all tokens are there."""
        self._fill(now_ms)
        return self._tokens >= self._limit * BURST_MS / 1_000

    def _fill(self, now_ms: int) -> None:
        earned = (now_ms - self._seen_ms) * self._limit / 1_000
        self._tokens = min(self._limit * BURST_MS / 1_000, self._tokens + earned)
        self._seen_ms = now_ms
