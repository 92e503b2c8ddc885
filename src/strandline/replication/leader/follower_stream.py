"""The leader's stream to one follower: what is in flight, and whether there is room for more.

Why:    several appends are in flight to each follower, so that a long round trip costs latency and
        no throughput; the window keeps a slow follower from swallowing the leader's memory.
How:    appends go out in order; acknowledgements are cumulative. Where none comes for a while the
        follower is asked how far it is; what was sent stays in flight until it says so.
Owns:   the window; one per follower of a leading replica.
Source: Redpanda RFC 20220119; design section 5."""

from collections import deque

from strandline.model.ids import NO_BROKER, Index
from strandline.replication.leader.window import Departure, Window
from strandline.replication.settings import ReplicationSettings

PATIENCE_DOUBLINGS_MAX = 5
TRANSFER_MS_MAX = 30_000
"""The longest time for which the leader takes appends in flight to be still on their way."""
PEER_TRANSFER_MS_MAX = 5_000
"""The same for peer catch-up: a peer's appends may never come, and the measured speed may be of a
time when the link was cut."""
ORDER_MS_MAX = 2_000
"""A peer drops an order to send entries that has waited for longer."""
BACK_OFF_MS = 10_000
"""After peer catch-up has failed to reach a follower, the leader serves it for this long."""


class FollowerStream:
    """See the module."""

    __slots__ = (
        "_asked_count",
        "allowance_bytes",
        "backs_off_until_ms",
        "fetch_source",
        "handed_index",
        "inflight",
        "inflight_bytes",
        "is_behind",
        "is_blocked",
        "is_recovering",
        "missed_count",
        "missed_index",
        "progress_ms",
        "queued_count",
        "relay",
        "window",
    )

    def __init__(self, settings: ReplicationSettings) -> None:
        self.window = Window(
            bytes_limit=settings.inflight_bytes_max, count_limit=settings.inflight_count_max
        )
        self.inflight: deque[tuple[Index, Departure]] = deque()
        self.inflight_bytes = 0
        self.progress_ms = 0
        # Whether something was not sent because there was no room.
        self.is_blocked = False
        # Whether another replica may send it what it missed, up to here (-1 where that is not
        # known yet), and how many entries those were. See `fetch_sources`.
        self.is_behind = True
        self.missed_index = Index(-1)
        self.missed_count = 0
        # Up to here everything has been handed to the socket.
        self.handed_index = Index(-1)
        # Appends that have not been.
        self.queued_count = 0
        # Whether it is served from the log, and what it may get from there beyond the throttle.
        self.is_recovering = False
        self.allowance_bytes = 0
        # Who sends what it gets (`fetch_sources.LEADER`: the leader itself), and until when nobody
        # else.
        self.fetch_source = NO_BROKER
        self.backs_off_until_ms = 0
        # Through whom it is sent what is new, if that is not the leader; see `relays`.
        self.relay = NO_BROKER
        # How often in a row it was asked how far it is.
        self._asked_count = 0

    @property
    def has_room(self) -> bool:
        """Whether another append may be sent."""
        window = self.window
        return self.inflight_bytes < window.bytes_max and len(self.inflight) < window.count_max

    @property
    def has_peer_source(self) -> bool:
        """Whether another replica sends what is under way."""
        return self.fetch_source != NO_BROKER and bool(self.inflight)

    @property
    def is_sent_by_others(self) -> bool:
        """Whether what is under way does not come from the leader itself, all of it."""
        return bool(self.inflight) and (self.fetch_source != NO_BROKER or self.relay != NO_BROKER)

    @property
    def is_asked_again(self) -> bool:
        """Whether it was asked how far it is twice, with nothing acknowledged in between."""
        return self._asked_count > 1

    def on_served_from_memory(self) -> None:
        """What is sent now, by whomever, is new: all that came before is there, or on its way."""
        self.is_recovering = False
        self.allowance_bytes = 0

    def on_sent(self, last_index: Index, size_bytes: int, now_ms: int) -> None:
        """An append up to `last_index` left."""
        if not self.inflight:
            self.progress_ms = now_ms
        departure = self.window.depart(
            size_bytes,
            ahead_bytes=self.inflight_bytes,
            ahead_count=len(self.inflight),
            now_ms=now_ms,
        )
        assert size_bytes >= 0
        self.inflight.append((last_index, departure))
        self.inflight_bytes += size_bytes

    def on_acknowledged(self, match: Index, now_ms: int) -> None:
        """The follower has everything up to `match`."""
        inflight = self.inflight
        self.progress_ms = now_ms
        self._asked_count = 0
        delivered: list[Departure] = []
        while inflight and inflight[0][0] <= match:
            departure = inflight.popleft()[1]
            self.inflight_bytes -= departure.size_bytes
            delivered.append(departure)
        assert self.inflight_bytes >= 0 and (inflight or not self.inflight_bytes)
        if delivered:
            self.window.deliver(delivered, now_ms)

    def patience_ms(self, least_ms: int) -> int:
        """How long without an acknowledgement is no silence yet: as long as what is in flight takes
        at the speed that was measured, and longer each time that nothing came of asking."""
        patience_ms = least_ms << min(self._asked_count, PATIENCE_DOUBLINGS_MAX)
        if self.window.bytes_per_s:
            transfer_ms = self.inflight_bytes * 1000 // self.window.bytes_per_s
            limit_ms = PEER_TRANSFER_MS_MAX if self.has_peer_source else TRANSFER_MS_MAX
            patience_ms += min(transfer_ms, limit_ms)
        return patience_ms

    def on_asked(self, now_ms: int) -> None:
        """The follower is asked how far it is."""
        self.is_behind = True
        self.missed_index = Index(-1)
        self.progress_ms = now_ms
        self._asked_count += 1

    def on_returned(self, now_ms: int) -> None:
        """What was asked while nothing was heard of the follower does not count, nor does how long
        that took say how fast the way is; and its relay is not to blame for what has not come."""
        self.window.on_silence_ended(now_ms)
        self._asked_count = 0
        self.relay = NO_BROKER

    def reset(self) -> None:
        """What was in flight no longer counts."""
        self.relay = NO_BROKER
        self.window.reset_speed()
        self.is_behind = True
        self.missed_index = Index(-1)
        self.inflight.clear()
        self.inflight_bytes = 0
        self._asked_count = 0
