"""The leader's stream to one follower: appends in flight, and whether more may be sent.

Why:    several appends are in flight to each follower, so a long round trip costs latency but no
        throughput. The window keeps a slow follower from filling the leader's memory.
How:    appends leave in order; acknowledgements are cumulative. If none arrives for a while, the
        leader probes the follower. Appends in flight stay so until it answers.
Owns:   the window; one per follower of a leader.
Source: Redpanda RFC 20220119; design section 5."""

from collections import deque

from strandline.model.ids import NO_BROKER, Index
from strandline.replication.leader.window import Departure, Window
from strandline.replication.settings import ReplicationSettings

PATIENCE_DOUBLINGS_MAX = 5
TRANSFER_MS_MAX = 30_000
"""The leader takes appends in flight to be still on their way for this long at most."""
PEER_TRANSFER_MS_MAX = 5_000
"""The same for peer catch-up: a peer's appends may never arrive, and the measured speed may come
from a time when the link was cut."""
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
        # Whether the leader has more for it, and had no room to send that.
        self.is_blocked = False
        # Whether another replica may send the entries that it missed, up to which index (-1 while
        # that is unknown), and how many these were. See `fetch_sources`.
        self.is_behind = True
        self.missed_index = Index(-1)
        self.missed_count = 0
        # The socket has everything up to here.
        self.handed_index = Index(-1)
        # Appends that the socket does not have yet.
        self.queued_count = 0
        # Whether the leader serves it from the log, and how many bytes beyond the throttle's.
        self.is_recovering = False
        self.allowance_bytes = 0
        # Which broker sends its entries (`fetch_sources.LEADER`: the leader itself), and until when
        # only the leader does.
        self.fetch_source = NO_BROKER
        self.backs_off_until_ms = 0
        # The relay of its new entries; NO_BROKER: the leader sends them directly. See `relays`.
        self.relay = NO_BROKER
        # How many probes in a row it has not answered.
        self._asked_count = 0

    @property
    def has_room(self) -> bool:
        """Whether another append may be sent."""
        window = self.window
        return self.inflight_bytes < window.bytes_max and len(self.inflight) < window.count_max

    @property
    def has_peer_source(self) -> bool:
        """Whether another replica sends the appends in flight."""
        return self.fetch_source != NO_BROKER and bool(self.inflight)

    @property
    def is_sent_by_others(self) -> bool:
        """Whether appends are in flight that another replica sends or relays."""
        return bool(self.inflight) and (self.fetch_source != NO_BROKER or self.relay != NO_BROKER)

    @property
    def is_asked_again(self) -> bool:
        """Whether it was probed twice and acknowledged nothing in between."""
        return self._asked_count > 1

    def on_served_from_memory(self) -> None:
        """It gets new entries now, by any way: all earlier ones are there, or on their way."""
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
        """How long the leader waits for an acknowledgement before it probes: as long as the appends
        in flight take at the measured speed, and longer after each probe without an answer."""
        patience_ms = least_ms << min(self._asked_count, PATIENCE_DOUBLINGS_MAX)
        if self.window.bytes_per_s:
            transfer_ms = self.inflight_bytes * 1000 // self.window.bytes_per_s
            limit_ms = PEER_TRANSFER_MS_MAX if self.has_peer_source else TRANSFER_MS_MAX
            patience_ms += min(transfer_ms, limit_ms)
        return patience_ms

    def on_asked(self, now_ms: int) -> None:
        """The leader probes the follower."""
        self.is_behind = True
        self.missed_index = Index(-1)
        self.progress_ms = now_ms
        self._asked_count += 1

    def on_returned(self, now_ms: int) -> None:
        """The follower was silent, and is heard again: probes of that time do not count, the time
        says nothing about the link's speed, and the relay is not to blame."""
        self.window.on_silence_ended(now_ms)
        self._asked_count = 0
        self.relay = NO_BROKER

    def reset(self) -> None:
        """The appends in flight no longer count."""
        self.relay = NO_BROKER
        self.window.reset_speed()
        self.is_behind = True
        self.missed_index = Index(-1)
        self.inflight.clear()
        self.inflight_bytes = 0
        self._asked_count = 0
