"""What a failed login costs: its answer comes late.

Why:    passwords and tokens must not be found by trying.
How:    Each failure of an address delays its answer, more each time, up to a bound; a success, or a
        while without a failure, forgives. All ports count together.
Owns:   the failures by address.
Source: Kafka's `connection.failed.authentication.delay.ms` (KIP-306); decision 0069."""

from collections import OrderedDict

DELAY_FIRST_MS = 100
DELAY_MAX_MS = 5_000
FORGIVEN_AFTER_MS = 60_000
ADDRESSES_MAX = 10_000


class FailureDelays:
    """See the module."""

    def __init__(self) -> None:
        self.failure_count = 0
        # {address: (failures, when the last one was, in monotonic ms)}, the oldest first.
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def note(self, host: str, now_ms: float) -> int:
        """An address has failed; how long its answer waits, in ms. `now_ms`: monotonic time."""
        self.failure_count += 1
        count, at_ms = self._failures.pop(host, (0, 0.0))
        if now_ms - at_ms > FORGIVEN_AFTER_MS:
            count = 0
        self._failures[host] = (count + 1, now_ms)
        if len(self._failures) > ADDRESSES_MAX:
            self._failures.popitem(last=False)
        return min(DELAY_FIRST_MS << min(count, 10), DELAY_MAX_MS)

    def forgive(self, host: str) -> None:
        """An address has succeeded."""
        self._failures.pop(host, None)
