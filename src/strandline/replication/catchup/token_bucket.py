"""A token bucket: how many bytes may be read now.

Why:    throttled reads are even: no burst after a pause, at most one append above the rate.
How:    it fills at `bytes_per_s`, up to `BURST_MS` of that. One append may overdraw it; the next
        one waits.
Owns:   itself.
Source: design section 5 ("one recovery reader, throttled")."""

BURST_MS = 20


class TokenBucket:
    """A bucket of bytes; it starts full."""

    __slots__ = ("_counted_ms", "_left", "bytes_per_s")

    def __init__(self, now_ms: int, bytes_per_s: int) -> None:
        self.bytes_per_s = bytes_per_s
        self._left = self.burst_bytes
        self._counted_ms = now_ms

    @property
    def burst_bytes(self) -> int:
        """The bucket's capacity."""
        return max(1, self.bytes_per_s * BURST_MS // 1000)

    def has_bytes(self, now_ms: int) -> bool:
        """Whether one append may be read now."""
        assert now_ms >= self._counted_ms, "a monotonic clock"
        earned = (now_ms - self._counted_ms) * self.bytes_per_s // 1000
        if earned:
            self._left = min(self.burst_bytes, self._left + earned)
            self._counted_ms = now_ms
        return self._left > 0 and self.bytes_per_s > 0

    def spend(self, count: int) -> None:
        """Take `count` bytes that were read."""
        assert count >= 0
        self._left -= count

    def wait_ms(self, now_ms: int) -> int | None:
        """In how many ms the bucket is positive again; None: never at this rate."""
        if not self.bytes_per_s:
            return None
        self.has_bytes(now_ms)
        return max(1, -self._left * 1000 // self.bytes_per_s + 1)

    def change_rate(self, now_ms: int, bytes_per_s: int) -> None:
        """From now on the bucket fills at `bytes_per_s`."""
        if bytes_per_s != self.bytes_per_s:
            self.has_bytes(now_ms)
            self._counted_ms = now_ms
            self.bytes_per_s = bytes_per_s
            self._left = min(self._left, self.burst_bytes)
