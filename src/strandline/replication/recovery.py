"""How fast followers that are really behind are served from the log.

Why:    who was away for an hour needs gigabytes; producers and the followers that make up their
        quorum must not notice.
How:    credit in bytes grows with time, up to a little more than one append's worth. Who is to be
        served from the log asks; with credit left and nobody before it, it may. Else it waits in
        turn, one append each: all groups that recover share the rate alike. Credit may be overdrawn
        by one append, which is then waited for.
            Brokers of other regions have a credit of their own (`RecoveryRates`): what crosses
        is dearer, and moving replicas must not fill a link that producers' records need.
            What is appended while a follower is behind comes on top (`sender.allowance_bytes`):
        otherwise a producer faster than the rate would leave it behind for ever.
Owns:   the credits and the turns; one `RecoveryRates` per broker.
Source: design section 5 ("one recovery reader, throttled"); Redpanda's recovery throttle."""

from collections.abc import Callable, Iterable

from strandline.base.clock import Clock, Timer
from strandline.model.ids import BrokerId, GroupId

BURST_MS = 20

Reader = tuple[GroupId, BrokerId]
"""Whose log is read, and for whom."""


class RecoveryRate:
    """See the module."""

    def __init__(self, clock: Clock, *, bytes_per_s: int) -> None:
        self._clock = clock
        self._bytes_per_s = bytes_per_s
        self._credit_max = max(1, bytes_per_s * BURST_MS // 1000)
        self._credit = self._credit_max
        self._counted_ms = clock.monotonic_ms()
        # {reader: how it goes on}, in turn.
        self._waiting: dict[Reader, Callable[[], None]] = {}
        # Whose turn it is at this moment.
        self._admitted: Reader | None = None
        self._timer: Timer | None = None

    @property
    def waiting_count(self) -> int:
        """How many wait for their turn."""
        return len(self._waiting)

    def admits(self, reader: Reader, go_on: Callable[[], None]) -> bool:
        """Whether one append may be read now; if not, `go_on` is called when it may."""
        if self._admitted == reader:
            self._admitted = None
            return True
        if not self._waiting and self._admitted is None and self._has_credit():
            return True
        self._waiting[reader] = go_on  # In its turn, as whoever leads the group now.
        self._wake_later()
        return False

    def spend(self, count: int) -> None:
        """`count` bytes were read."""
        self._credit -= count

    def stop(self) -> None:
        """Call nobody any more."""
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _has_credit(self) -> bool:
        now = self._clock.monotonic_ms()
        earned = (now - self._counted_ms) * self._bytes_per_s // 1000
        if earned:
            self._credit = min(self._credit_max, self._credit + earned)
            self._counted_ms = now
        return self._credit > 0

    def _wake_later(self) -> None:
        if self._timer is None:
            delay_ms = max(1, -self._credit * 1000 // self._bytes_per_s + 1)
            self._timer = self._clock.call_later(delay_ms, self._wake)

    def _wake(self) -> None:
        self._timer = None
        while self._waiting and self._has_credit():
            reader = next(iter(self._waiting))
            go_on = self._waiting.pop(reader)
            self._admitted = reader
            go_on()
            self._admitted = None
        if self._waiting:
            self._wake_later()


class RecoveryRates:
    """The rate for brokers of this region, and the one for all others."""

    def __init__(self, clock: Clock, *, bytes_per_s: int, cross_region_bytes_per_s: int) -> None:
        self._near = RecoveryRate(clock, bytes_per_s=bytes_per_s)
        self._far = RecoveryRate(clock, bytes_per_s=cross_region_bytes_per_s)
        self._far_peers: frozenset[BrokerId] = frozenset()

    def place(self, far_peers: Iterable[BrokerId]) -> None:
        """These brokers are in other regions."""
        self._far_peers = frozenset(far_peers)

    def of(self, peer: BrokerId) -> RecoveryRate:
        """What `peer` is served at."""
        return self._far if peer in self._far_peers else self._near

    def stop(self) -> None:
        """Call nobody any more."""
        self._near.stop()
        self._far.stop()
