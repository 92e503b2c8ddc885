"""How much may be in flight to one follower: the measured bandwidth times the round trip.

Why:    a window that is too small leaves a long link idle. One that is too large fills the queues
        of a slow link, and delays every other message to that broker.
How:    each acknowledged append is a sample:
        - rate: the bytes acknowledged since it was sent, over that time;
        - round trip: from its sending to its acknowledgement, the follower's flush included.

        The bandwidth is the highest rate of the last rounds. (A sample that did not fill half of
        the window can only raise it.) The round trip is the shortest of the last seconds. The
        window is twice their product, in bytes and in appends. It doubles each round trip until the
        link is full, and then keeps about one round trip's worth in the link's queue.
            That queue would hide the shortest round trip. So when the measured one is too old, the
        window is half of the product until one append has crossed an empty link.
            An append that left before a silence ended is no sample: it would measure the silence.
Owns:   the measurements of one follower of one group. Callers pass the time in.
Source: BBR (Cardwell et al., 2016); Redpanda RFC 20220119 (a limit for each follower); design
        section 5."""

import msgspec

GAIN = 2
BYTES_MIN = 128 * 1024
BYTES_FIRST = 1024 * 1024
COUNT_MIN = 16
COUNT_FIRST = 64
MEASURED_BYTES_MIN = 64 * 1024
"""A smaller acknowledgement says nothing of the speed: it fits into the first round trips of any
connection."""
ROUND_TRIP_MS_MIN = 10
"""A flush and a pass of the loop vary by this much, so a shorter round trip gains nothing."""
ROUND_TRIP_AGE_MAX_MS = 10_000
RATE_AGE_MIN_MS = 1_000
RATE_AGE_ROUND_TRIPS = 8


class Departure(msgspec.Struct, frozen=True, gc=False):
    """The state when an append was sent: the beginning of a sample."""

    sent_ms: int
    size_bytes: int
    # What had been acknowledged by then, and when the last part of it.
    delivered_bytes: int
    delivered_count: int
    delivered_ms: int
    # Bytes that were under way before it.
    ahead_bytes: int
    # Whether half of the window was filled then.
    is_conclusive: bool
    # How many silences had ended.
    silence_count: int


class Highest:
    """The highest value of the last one or two stretches of time."""

    __slots__ = ("_before", "_now", "_since_ms", "value")

    def __init__(self) -> None:
        self._before = 0
        self._now = 0
        self._since_ms = 0
        self.value = 0
        """0 while there is none."""

    def add(self, value: int, now_ms: int, *, stretch_ms: int, is_conclusive: bool) -> None:
        """A new value; one that is not conclusive never displaces a higher one."""
        if is_conclusive and now_ms - self._since_ms >= stretch_ms:
            self._before, self._now = self._now, 0
            self._since_ms = now_ms
        if value > self._now and (is_conclusive or value > self.value):
            self._now = value
        self.value = max(self._before, self._now)


class Window:
    """See the module. `bytes_max` and `count_max`: below both, another append may be sent."""

    __slots__ = (
        "_byte_rate",
        "_bytes_limit",
        "_count_limit",
        "_count_rate",
        "_delivered_bytes",
        "_delivered_count",
        "_delivered_ms",
        "_is_draining",
        "_is_known",
        "_round_trip_ms",
        "_round_trip_since_ms",
        "_silence_count",
        "bytes_max",
        "count_max",
        "is_measured",
    )

    def __init__(self, *, bytes_limit: int, count_limit: int) -> None:
        """The limits are what the configuration allows at most."""
        self._bytes_limit = bytes_limit
        self._count_limit = count_limit
        self.bytes_max = min(BYTES_FIRST, bytes_limit)
        self.count_max = min(COUNT_FIRST, count_limit)
        # Bytes and appends per second.
        self._byte_rate = Highest()
        self._count_rate = Highest()
        # The shortest, 0 while there is none, and when it was measured.
        self._round_trip_ms = 0
        self._round_trip_since_ms = 0
        # Whether the link is let run empty.
        self._is_draining = False
        # Whether the window was ever half full: before that, little was measured of little.
        self._is_known = False
        self._delivered_bytes = 0
        self._delivered_count = 0
        self._delivered_ms = 0
        self._silence_count = 0
        # Whether a large acknowledgement has come since the last silence or loss. Before it, an
        # append may take longer than the bandwidth says, because connections begin slowly.
        self.is_measured = True

    @property
    def bytes_per_s(self) -> int:
        """The bandwidth; 0 while it is not known."""
        return self._byte_rate.value if self._is_known else 0

    @property
    def round_trip_ms(self) -> int:
        """The shortest round trip; 0 while it is not known."""
        return self._round_trip_ms

    def depart(
        self, size_bytes: int, *, ahead_bytes: int, ahead_count: int, now_ms: int
    ) -> Departure:
        """An append leaves behind others that are under way."""
        if not ahead_bytes:
            self._delivered_ms = now_ms
        return Departure(
            sent_ms=now_ms,
            size_bytes=size_bytes,
            delivered_bytes=self._delivered_bytes,
            delivered_count=self._delivered_count,
            delivered_ms=self._delivered_ms,
            ahead_bytes=ahead_bytes,
            is_conclusive=(
                2 * (ahead_bytes + size_bytes) >= self.bytes_max
                or 2 * (ahead_count + 1) >= self.count_max
            ),
            silence_count=self._silence_count,
        )

    def on_silence_ended(self, now_ms: int) -> None:
        """The follower was silent, and is heard again: measure appends that leave from now on."""
        self.reset_speed()
        self._silence_count += 1
        self._delivered_ms = now_ms

    def reset_speed(self) -> None:
        """The connection may be a new one: the measured bandwidth may be too high."""
        self.is_measured = False

    def deliver(self, departures: list[Departure], now_ms: int) -> None:
        """These appends were acknowledged, in the order in which they left; at least one."""
        self._delivered_ms = now_ms
        # The last one is the freshest sample, and has waited least.
        departure = departures[-1]
        silences = self._silence_count
        if departure.silence_count < silences:
            return
        if departures[0].silence_count < silences:
            departures = [one for one in departures if one.silence_count == silences]
        delivered_bytes = 0
        for one in departures:
            delivered_bytes += one.size_bytes
        if delivered_bytes >= MEASURED_BYTES_MIN:
            self.is_measured = True
        self._delivered_bytes += delivered_bytes
        self._delivered_count += len(departures)
        assert self._delivered_bytes >= departure.delivered_bytes, "a rate is never negative"
        self._measure_round_trip(departure, now_ms)
        self._is_known = self._is_known or departure.is_conclusive
        elapsed_ms = max(now_ms - departure.delivered_ms, 1)
        stretch_ms = max(RATE_AGE_MIN_MS, RATE_AGE_ROUND_TRIPS * self._round_trip_ms)
        for rate, count in (
            (self._byte_rate, self._delivered_bytes - departure.delivered_bytes),
            (self._count_rate, self._delivered_count - departure.delivered_count),
        ):
            per_s = count * 1000 // elapsed_ms
            is_conclusive = departure.is_conclusive
            if is_conclusive or per_s > rate.value:
                rate.add(per_s, now_ms, stretch_ms=stretch_ms, is_conclusive=is_conclusive)
        self._resize()

    def _measure_round_trip(self, departure: Departure, now_ms: int) -> None:
        sample_ms = max(now_ms - departure.sent_ms, 1)
        is_old = now_ms - self._round_trip_since_ms > ROUND_TRIP_AGE_MAX_MS
        is_first = not self._round_trip_ms
        has_waited = is_old and departure.ahead_bytes > self._half_bytes
        if is_first or sample_ms <= self._round_trip_ms or (is_old and not has_waited):
            self._round_trip_ms = sample_ms
            self._round_trip_since_ms = now_ms
            self._is_draining = False
        elif is_old:
            self._is_draining = True

    @property
    def _half_bytes(self) -> int:
        """With so much under way, nothing waits in the link's queue."""
        return self._byte_rate.value * self._round_trip_ms // 2000

    def _resize(self) -> None:
        # Twice what is delivered in a round trip.
        per_s = 1000 // GAIN
        round_trip_ms = max(self._round_trip_ms, ROUND_TRIP_MS_MIN)
        bytes_min, count_min = (
            (BYTES_MIN, COUNT_MIN) if self._is_known else (BYTES_FIRST, COUNT_FIRST)
        )
        bytes_max = max(self._byte_rate.value * round_trip_ms // per_s, bytes_min)
        if self._is_draining:
            bytes_max = max(self._half_bytes, 1)
        self.bytes_max = min(bytes_max, self._bytes_limit)
        count_max = max(self._count_rate.value * round_trip_ms // per_s, count_min)
        self.count_max = min(count_max, self._count_limit)
