"""Bytes that may be read, growing with time.

Why:    what is slowed down must be slowed down evenly: no burst after a pause, and at most one
        append too much.
How:    grows by `bytes_per_s`, up to a little of it. It may be overdrawn by one append, which is
        then waited for. Without any rate it grows no more.
Owns:   itself.
Source: design section 5 ("one recovery reader, throttled")."""

BURST_MS = 20


class TokenBucket:
    """See the module. It begins full."""

    __slots__ = ("_counted_ms", "_left", "bytes_per_s")

    def __init__(self, now_ms: int, bytes_per_s: int) -> None:
        self.bytes_per_s = bytes_per_s
        self._left = self.burst_bytes
        self._counted_ms = now_ms

    @property
    def burst_bytes(self) -> int:
        """The most there may be of it."""
        return max(1, self.bytes_per_s * BURST_MS // 1000)

    def is_left(self, now_ms: int) -> bool:
        """Whether one append may be read."""
        earned = (now_ms - self._counted_ms) * self.bytes_per_s // 1000
        if earned:
            self._left = min(self.burst_bytes, self._left + earned)
            self._counted_ms = now_ms
        return self._left > 0 and self.bytes_per_s > 0

    def spend(self, count: int) -> None:
        """`count` bytes were read."""
        self._left -= count

    def wait_ms(self, now_ms: int) -> int | None:
        """In how many milliseconds there will be some; None: never, at this rate."""
        if not self.bytes_per_s:
            return None
        self.is_left(now_ms)
        return max(1, -self._left * 1000 // self.bytes_per_s + 1)

    def change_rate(self, now_ms: int, bytes_per_s: int) -> None:
        """It grows at another rate from now on."""
        if bytes_per_s != self.bytes_per_s:
            self.is_left(now_ms)
            self._counted_ms = now_ms
            self.bytes_per_s = bytes_per_s
            self._left = min(self._left, self.burst_bytes)
